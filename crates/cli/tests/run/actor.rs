//! A program for the tests of `titin run`: one side of a coupled pair, and a way to fail.
//!
//! `actor ROLE [WHEN:WHAT]` with ROLE `macro` or `micro`; WHEN is `before`, `middle` or `after` the
//! coupling, and WHAT one of the words in the function `misbehave`.

use std::process::{Command, exit};
use std::time::Duration;

use titin_runtime::{Instance, Options, Patience, Payload, Result};

const STEPS: u32 = 6;

fn main() {
    let mut words = std::env::args().skip(1);
    let role = words.next().expect("a role");
    let fault = words.next().unwrap_or_default();
    let (when, what) = fault.split_once(':').unwrap_or(("never", ""));
    if when == "before" {
        misbehave(what);
    }
    if let Err(error) = play(&role, &|moment| {
        if moment == when {
            misbehave(what);
        }
    }) {
        eprintln!("{role}: {error}");
        exit(1);
    }
    if when == "after" {
        misbehave(what);
    }
}

fn play(role: &str, at: &dyn Fn(&str)) -> Result<()> {
    let ports = match role {
        "macro" => "o_i: out; s: back",
        "misspelt" => "o_i: uot; s: back",
        "micro" | "leaver" => "f_init: in; o_f: final",
        _ => "o_i: out; s: back",
    };
    let instance = Instance::open(Options::default().ports(ports)?.language("rust"))?;
    at("joined");
    match role {
        "micro" => {
            let mut uses = 0;
            let (input, output) = (instance.port("in")?, instance.port("final")?);
            while instance.reuse()? {
                let message = instance.receive(input, None, Patience::Forever)?;
                uses += 1;
                if uses == STEPS / 2 {
                    at("middle");
                }
                instance.send(output, None, &Payload::nil(), message.timestamp, None, None)?;
            }
            println!("called {uses} times");
        }
        // Ends in the middle of its third use.
        "leaver" => {
            let (input, output) = (instance.port("in")?, instance.port("final")?);
            for use_number in 1.. {
                instance.reuse()?;
                let message = instance.receive(input, None, Patience::Forever)?;
                if use_number == 3 {
                    break;
                }
                instance.send(output, None, &Payload::nil(), message.timestamp, None, None)?;
            }
        }
        // Waits for an answer before it has sent, which is a mistake.
        "deaf" => {
            instance.skip_checks("to see what happens");
            while instance.reuse()? {
                instance.receive(instance.port("back")?, None, Patience::Forever)?;
            }
        }
        _ => {
            instance.log(20, "off we go");
            let (output, input) = (instance.port("out")?, instance.port("back")?);
            let step = instance
                .find_setting("dt")
                .map_or(Ok(1.0), |_| instance.setting("dt")?.as_f64())?;
            while instance.reuse()? {
                for number in 0..STEPS {
                    let time = f64::from(number) * step;
                    if number == STEPS / 2 {
                        at("middle");
                    }
                    instance.send(output, None, &Payload::nil(), time, Some(time + step), None)?;
                    instance.receive(input, None, Patience::Forever)?;
                }
            }
        }
    }
    std::fs::write("result.txt", role).expect("the work directory can be written");
    instance.close()
}

fn misbehave(what: &str) {
    eprintln!("about to: {what}");
    match what {
        "exit0" => exit(0),
        "exit3" => exit(3),
        "abort" => std::process::abort(),
        "panic" => panic!("negative depth"),
        "kill" => {
            signal("KILL");
            hang();
        }
        // Hangs in its own code, as a solver may: the program neither computes nor calls titin.
        "hang" => hang(),
        // Waits until a test makes the file `go` in the work directory.
        "wait" => {
            while !std::path::Path::new("go").exists() {
                std::thread::park_timeout(Duration::from_millis(2));
            }
        }
        // Starts a child in a session of its own. The child outlives the program.
        "fork" => {
            let shell = "setsid sleep 1000 & echo $! > child.pid";
            let status = Command::new("sh")
                .args(["-c", shell])
                .status()
                .expect("a shell starts");
            assert!(status.success());
        }
        // Starts a chain of processes, as daemons do: each process starts the next process and
        // ends. The chain ends after a while, so that a failed test leaves no process.
        "chain" => {
            std::fs::write("chain.sh", "[ $1 -gt 0 ] && sh \"$0\" $(($1 - 1)) &\n")
                .expect("a file");
            let status = Command::new("sh")
                .args(["chain.sh", "20000"])
                .status()
                .expect("a shell starts");
            assert!(status.success());
        }
        "chainwait" => {
            misbehave("chain");
            misbehave("wait");
        }
        "forkkill" => {
            misbehave("fork");
            misbehave("kill");
        }
        other => panic!("unknown fault {other}"),
    }
}

fn signal(name: &str) {
    let own = std::process::id().to_string();
    let _ = Command::new("kill")
        .args([&format!("-{name}"), &own])
        .status();
}

fn hang() -> ! {
    loop {
        std::thread::park_timeout(Duration::from_secs(1000));
    }
}
