//! The commands that start the agents of a run.

use std::path::Path;

use titin_wire::token::Token;

use crate::guard::Launch;
use crate::host::HostId;
use crate::plan::{AgentStart, BatchJob, Plan, PlannedHost};
use crate::shell::quote;

/// Hosts whose agents one command starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AgentGroup {
    pub(crate) hosts: Vec<HostId>,
    /// The name of the file with the output of the command.
    pub(crate) name: String,
    command: LaunchCommand,
}

/// A command that starts agents.
#[derive(Debug, Clone, PartialEq, Eq)]
struct LaunchCommand {
    words: Vec<String>,
    /// The script for the shell that the words start, as the first lines of its input; `None` if the
    /// input is for the agents alone.
    script: Option<String>,
}

impl AgentGroup {
    /// The command in words, for people.
    pub(crate) fn command(&self) -> String {
        let words = self.command.words.iter().map(|word| quote(word));
        words.collect::<Vec<_>>().join(" ")
    }

    /// The command for the guard of the manager's host. `input` is the input of the agents, a line.
    pub(crate) fn launch(&self, folder: &Path, input: String) -> Launch {
        let output = folder.join(format!("{}.txt", self.name));
        let LaunchCommand { words, script } = &self.command;
        let input = match script {
            None => input,
            Some(script) => format!("{script} <<'END'\n{input}\nEND\n"),
        };
        Launch {
            program: words[0].as_str().into(),
            args: words[1..].to_vec(),
            clear: false,
            set: Vec::new(),
            unset: Vec::new(),
            directory: folder.to_owned(),
            stdout: output.clone(),
            stderr: output,
            input: Some(input),
        }
    }
}

/// The commands that start the agents of a plan's hosts. `titin` is the path of this command.
pub(crate) fn groups(plan: &Plan, titin: &Path) -> Vec<AgentGroup> {
    let mut groups: Vec<AgentGroup> = Vec::new();
    let mut in_slurm: Vec<Vec<HostId>> = Vec::new();
    for (at, host) in plan.hosts.iter().enumerate() {
        let id = HostId::further(at);
        if host.start == AgentStart::Srun {
            let key = |host: &PlannedHost| (host.het_group, host.site, host.titin.clone());
            let is_alike =
                |hosts: &&mut Vec<HostId>| plan.further_host(hosts[0]).map(key) == Some(key(host));
            match in_slurm.iter_mut().find(is_alike) {
                Some(hosts) => hosts.push(id),
                None => in_slurm.push(vec![id]),
            }
        } else if let Some(command) = command(host, titin) {
            groups.push(AgentGroup {
                hosts: vec![id],
                name: host.name.clone(),
                command,
            });
        }
    }
    let sruns = in_slurm.into_iter().enumerate();
    groups.extend(sruns.map(|(number, hosts)| srun(plan, number, hosts, titin)));
    groups
}

/// One `srun` for all nodes of a job, or of a part of a heterogeneous job. Each agent knows its node by
/// a variable of Slurm's. `number` makes the name of the file for the output unique.
fn srun(plan: &Plan, number: usize, hosts: Vec<HostId>, titin: &Path) -> AgentGroup {
    let nodes = hosts.iter().filter_map(|id| plan.further_host(*id));
    let nodes: Vec<&str> = nodes.map(|host| host.address.as_str()).collect();
    let PlannedHost {
        titin: own,
        het_group,
        ..
    } = plan.further_host(hosts[0]).cloned().unwrap_or_default();
    let count = nodes.len();
    let mut words: Vec<String> = vec![
        "srun".into(),
        format!("--nodes={count}"),
        format!("--ntasks={count}"),
        "--ntasks-per-node=1".into(),
        format!("--nodelist={}", nodes.join(",")),
        // Programs of the run share the nodes with the agents.
        "--overlap".into(),
        "--mem=0".into(),
        "--cpu-bind=none".into(),
        "--mpi=none".into(),
        // The end of an agent is no reason to end the other agents.
        "--kill-on-bad-exit=0".into(),
        "--wait=0".into(),
    ];
    words.extend(het_group.map(|group| format!("--het-group={group}")));
    words.push(own.unwrap_or_else(|| titin.to_string_lossy().into_owned()));
    words.push("agent".into());
    let name = match number {
        0 => "srun".to_owned(),
        number => format!("srun-{}", number + 1),
    };
    AgentGroup {
        hosts,
        name,
        command: LaunchCommand {
            words,
            script: None,
        },
    }
}

/// The command that starts the agent of one host. `None` if the user or a group's `srun` starts the agent.
fn command(host: &PlannedHost, titin: &Path) -> Option<LaunchCommand> {
    let address = host.address.as_str();
    let launcher: Vec<&str> = match &host.start {
        AgentStart::Srun | AgentStart::ByHand => return None,
        AgentStart::Batch(job) => return Some(submission(host, job, titin)),
        // Without a terminal nobody could answer a question. A connection that others share must not end
        // with the run.
        AgentStart::Ssh => {
            let options = ["-T", "-o", "BatchMode=yes", "-o", "ControlMaster=no"];
            [&["ssh"], &options[..], &[address]].concat()
        }
        AgentStart::Mpirun => vec!["mpirun", "--host", address, "-np", "1"],
        AgentStart::Hydra => vec!["mpiexec.hydra", "-hosts", address, "-n", "1"],
        AgentStart::Command(own) => own.iter().map(String::as_str).collect(),
    };
    let script = agent_script(host, titin);
    let mut words: Vec<String> = launcher.into_iter().map(str::to_owned).collect();
    match host.start {
        // ssh hands one text to the user's shell, which may be bash, csh or fish. All of them read one
        // quoted word alike.
        AgentStart::Ssh => words.push(format!("exec sh -c {}", quote(&script))),
        _ => words.extend(["sh".to_owned(), "-c".to_owned(), script]),
    }
    Some(LaunchCommand {
        words,
        script: None,
    })
}

/// The command that submits the batch job of an agent. `via` may be `ssh`, which hands its words to a
/// shell, or a command that hands them on as they are, such as `docker exec`. So `via` starts a shell
/// by one plain word, and the shell reads the script.
fn submission(host: &PlannedHost, job: &BatchJob, titin: &Path) -> LaunchCommand {
    let script = format!("{} --token{}", agent_script(host, titin), job_options(job));
    let shell = "sh".to_owned();
    match job.via.is_empty() {
        true => LaunchCommand {
            words: vec![shell, "-c".to_owned(), script],
            script: None,
        },
        false => LaunchCommand {
            words: [&job.via[..], &[shell]].concat(),
            script: Some(script),
        },
    }
}

/// The options of a job for `titin agent`, each behind a blank.
fn job_options(job: &BatchJob) -> String {
    let counts = [("nodes", job.nodes), ("cores-per-node", job.cores_per_node)];
    let counts = counts.map(|(name, count)| (name, count.map(|count| count.to_string())));
    let given = [
        ("submit", Some(job.system.clone())),
        ("time", Some(format!("{} s", job.time.value_si))),
        ("queue", job.queue.clone()),
        ("account", job.account.clone()),
    ];
    let of_system = job.options.iter();
    let of_system = of_system.map(|(name, value)| ("batch-option", format!("{name}={value}")));
    let all = given.into_iter().chain(counts);
    let all = all.filter_map(|(name, value)| Some((name, value?)));
    let all = all.chain(of_system);
    all.map(|(name, value)| format!(" --{name} {}", quote(&value)))
        .collect()
}

/// Runs the agent by `titin` of the description. Otherwise by the path of the manager's `titin`, as on
/// a shared file system, or by the `titin` in `PATH`.
fn agent_script(host: &PlannedHost, titin: &Path) -> String {
    let name = quote(&host.name);
    match &host.titin {
        Some(own) => format!("exec {} agent --host {name}", quote(own)),
        None => {
            let titin = quote(&titin.to_string_lossy());
            format!("t={titin}; [ -x \"$t\" ] || t=titin; exec \"$t\" agent --host {name}")
        }
    }
}

/// The hosts whose agents the user starts.
pub(crate) fn hosts_by_hand(plan: &Plan) -> impl Iterator<Item = HostId> {
    let hosts = (0..plan.hosts.len()).map(HostId::further);
    hosts.filter(|host| plan.is_by_hand(*host))
}

/// What the user is told of the agents to start by hand, each with its token; `None` without such
/// agents. `echo` is a part of every shell, so no list of processes has the token.
pub(crate) fn by_hand(plan: &Plan, tokens: &[(HostId, Token)]) -> Option<String> {
    if tokens.is_empty() {
        return None;
    }
    let line = |(host, token): &(HostId, Token)| {
        let host = plan.further_host(*host)?;
        let titin = host.titin.as_deref().unwrap_or("titin");
        let site = host.site.and_then(|site| plan.sites.get(site));
        let place = site.map_or(String::new(), |site| format!(" at the site {}", site.name));
        Some(format!(
            "  on {}{place}:  echo {} | {} agent --token\n",
            host.name,
            token.reveal(),
            quote(titin),
        ))
    };
    let lines: String = tokens.iter().filter_map(line).collect();
    Some(format!(
        "start an agent on each of these hosts, by a line that serves once:\n{lines}"
    ))
}

#[cfg(test)]
mod tests {
    use titin_model::quantity;
    use titin_wire::Secret;

    use super::*;
    use crate::plan::PlannedSite;

    fn plan(hosts: &[(&str, AgentStart)]) -> Plan {
        let host = |(name, start): &(&str, AgentStart)| PlannedHost {
            name: (*name).to_owned(),
            address: format!("me@{name}"),
            start: start.clone(),
            ..PlannedHost::default()
        };
        Plan {
            hosts: hosts.iter().map(host).collect(),
            ..Plan::default()
        }
    }

    fn words_of(start: AgentStart) -> Vec<String> {
        let groups = groups(&plan(&[("n1", start)]), Path::new("/opt/my titin"));
        groups[0].command.words.clone()
    }

    fn batch_job(via: &[&str]) -> AgentStart {
        AgentStart::Batch(Box::new(BatchJob {
            system: "slurm".to_owned(),
            time: quantity::parse("2 h").unwrap(),
            nodes: None,
            cores_per_node: Some(16),
            queue: Some("long ones".to_owned()),
            account: None,
            options: [("constraint".to_owned(), "gpu&ib".to_owned())].into(),
            via: via.iter().map(|&word| word.to_owned()).collect(),
        }))
    }

    #[test]
    fn a_batch_job_is_submitted_by_a_command_without_the_token() {
        let script = "t='/opt/my titin'; [ -x \"$t\" ] || t=titin; exec \"$t\" agent --host n1 --token --submit slurm \
                      --time '7200 s' --queue 'long ones' --cores-per-node 16 --batch-option 'constraint=gpu&ib'";
        assert_eq!(words_of(batch_job(&[])), ["sh", "-c", script]);
        let plan = plan(&[("n1", batch_job(&["ssh", "login"]))]);
        let groups = groups(&plan, Path::new("/opt/my titin"));
        assert_eq!(groups[0].command(), "ssh login sh");
        let launch = groups[0].launch(Path::new("/run"), "82a6".to_owned());
        let expected = format!("{script} <<'END'\n82a6\nEND\n");
        assert_eq!(launch.input, Some(expected));
    }

    #[test]
    fn each_launcher_has_its_words() {
        let script = "t='/opt/my titin'; [ -x \"$t\" ] || t=titin; exec \"$t\" agent --host n1";
        assert_eq!(
            words_of(AgentStart::Mpirun),
            ["mpirun", "--host", "me@n1", "-np", "1", "sh", "-c", script]
        );
        assert_eq!(
            words_of(AgentStart::Hydra)[..5],
            ["mpiexec.hydra", "-hosts", "me@n1", "-n", "1"]
        );
        let own = vec!["docker".to_owned(), "exec".to_owned(), "-i".to_owned()];
        assert_eq!(
            words_of(AgentStart::Command(own))[..4],
            ["docker", "exec", "-i", "sh"]
        );
        let by_ssh = words_of(AgentStart::Ssh);
        let options = ["ssh", "-T", "-o", "BatchMode=yes", "-o", "ControlMaster=no"];
        assert_eq!(
            (&by_ssh[..6], by_ssh[6].as_str()),
            (&options.map(String::from)[..], "me@n1")
        );
        let remote = std::process::Command::new("sh")
            .args(["-c", &by_ssh[7].replace("exec sh -c", "printf %s")])
            .output()
            .unwrap();
        assert_eq!(String::from_utf8(remote.stdout).unwrap(), script);
    }

    #[test]
    fn one_srun_starts_the_agents_of_a_job() {
        let mut plan = plan(&[
            ("n2", AgentStart::Srun),
            ("box", AgentStart::ByHand),
            ("n3", AgentStart::Srun),
        ]);
        let found = groups(&plan, Path::new("/bin/titin"));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].hosts, [HostId(1), HostId(3)]);
        assert!(found[0].command().contains("--nodelist=me@n2,me@n3 "));
        plan.hosts[2].het_group = Some(1);
        let found = groups(&plan, Path::new("/bin/titin"));
        assert_eq!(found[1].hosts, [HostId(3)]);
        assert!(
            found[1]
                .command()
                .contains("--het-group=1 /bin/titin agent")
        );
        let by_hand_hosts: Vec<HostId> = hosts_by_hand(&plan).collect();
        assert_eq!(by_hand_hosts, [HostId(2)]);
        let token = Token {
            number: 5,
            key: Secret::random(),
            host: "box".to_owned(),
            addresses: Vec::new(),
            relay: None,
        };
        let digits = token.reveal();
        let tokens = [(HostId(2), token)];
        let expected = format!("  on box:  echo {digits} | titin agent --token\n");
        let here = by_hand(&plan, &tokens).unwrap();
        assert!(here.ends_with(&expected), "{here}");
        plan.hosts[1].site = Some(0);
        plan.hosts[1].titin = Some("/opt/my titin".to_owned());
        plan.sites.push(PlannedSite {
            name: "south".to_owned(),
            relay: "login:4710".to_owned(),
        });
        let there = by_hand(&plan, &tokens).unwrap();
        let expected =
            format!("  on box at the site south:  echo {digits} | '/opt/my titin' agent --token\n");
        assert!(there.ends_with(&expected), "{there}");
        assert_eq!(by_hand(&plan, &[]), None);
    }
}
