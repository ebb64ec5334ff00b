//! Sites that relays lead to. The relay of this process's site is asked to let the paths to a site through.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use titin_os::private_file::{Unread, read_ordinary, read_private};
use titin_transport::{Admission, AdmissionError, AdmissionNews, HomeRelay, Reactor};
use titin_wire::circuit::RunPermit;
use titin_wire::connection::{SESSION_PATIENCE, SiteAccess};
use titin_wire::{Address, Secret};

use crate::error::PathError;

/// The environment variable that names the folder of this site's relay.
pub const RELAY_VARIABLE: &str = "TITIN_RELAY";

/// The name by which relays know paths, in their logs.
const NAME: &str = "paths";

/// The files of a relay's folder: the address for processes of the site, and the key by which these prove themselves.
const ADDRESS_FILE: &str = "address";
const KEY_FILE: &str = "access";

/// The rights of others than the owner and his group.
const OTHERS: u32 = 0o007;

/// The sites that a process reaches by relays, as long as it has paths. Each has a lock of its own, since a relay may take
/// long to answer.
#[derive(Default)]
pub(crate) struct ReachedSites(Mutex<HashMap<String, Arc<Mutex<Option<ReachedSite>>>>>);

struct ReachedSite {
    /// Why relays do not let paths through.
    refusals: Arc<Mutex<Vec<String>>>,
    _admission: Admission,
}

/// Why a site is not reached.
pub(crate) enum Unreached {
    /// The next attempt may succeed.
    Passing(String),
    /// The next attempt fails, too.
    Lasting(String),
}

impl ReachedSites {
    /// Has the relay of this process's site let paths to another site through.
    ///
    /// # Errors
    /// If no relay is named, or it does not answer, or refuses.
    pub(crate) fn reach(&self, site: &str, reactor: &Reactor) -> Result<(), Unreached> {
        let reached = self.site(site);
        let mut reached = lock(&reached);
        if reached.is_some() {
            return Ok(());
        }
        let relay = home_relay().map_err(Unreached::Lasting)?;
        let permit = RunPermit::new(NAME.to_owned(), vec![site.to_owned()]);
        let refusals = Arc::new(Mutex::new(Vec::new()));
        let told = refusals.clone();
        let tell = move |news| {
            if let AdmissionNews::Refused(why) = news {
                *lock(&told) = why;
            }
        };
        let (address, run, secret) = (relay.address.clone(), permit.run, permit.permit.clone());
        let begun = Admission::begin(relay, permit, tell);
        let (admission, admitted) = begun.map_err(|error| match error {
            AdmissionError::Unanswered(why) => Unreached::Passing(format!(
                "the relay of this site does not answer at {address}: {why}; `titin relay run` starts it"
            )),
            AdmissionError::Refused(why) => {
                Unreached::Lasting(format!("the relay of this site refuses: {why}"))
            }
        })?;
        reactor.reach_site(
            site,
            &SiteAccess {
                site: admitted.site,
                relay: address,
                run,
                permit: secret,
                patience: SESSION_PATIENCE.as_secs_f64(),
                encrypt: true,
                congestion: admitted.congestion,
            },
        );
        *reached = Some(ReachedSite {
            refusals,
            _admission: admission,
        });
        Ok(())
    }

    /// The reason why a path was not opened, with what relays say of the sites of its addresses.
    pub(crate) fn explain(&self, why: PathError, addresses: &[Address]) -> PathError {
        let PathError::NotOpened(mut why) = why else {
            return why;
        };
        for site in addresses.iter().filter_map(Address::site) {
            let reached = self.site(site);
            let reached = lock(&reached);
            let refusals = reached.as_ref().map(|reached| lock(&reached.refusals));
            for refusal in refusals.iter().flat_map(|refusals| refusals.iter()) {
                why += &format!("; {refusal}");
            }
        }
        PathError::NotOpened(why)
    }

    fn site(&self, site: &str) -> Arc<Mutex<Option<ReachedSite>>> {
        lock(&self.0).entry(site.to_owned()).or_default().clone()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The relay of this process's site, whose folder is in the environment.
fn home_relay() -> Result<HomeRelay, String> {
    let folder = std::env::var_os(RELAY_VARIABLE).filter(|folder| !folder.is_empty());
    let Some(folder) = folder.map(PathBuf::from) else {
        return Err(format!(
            "the environment variable {RELAY_VARIABLE} does not name the folder of this site's relay, which leads to other sites"
        ));
    };
    let unread = |name: &str, why: Unread| {
        let file = folder.join(name);
        format!(
            "{}: {why}. {RELAY_VARIABLE} names the folder of this site's relay, and `titin relay run` starts it",
            file.display()
        )
    };
    let address = read_ordinary(&folder.join(ADDRESS_FILE));
    let address = address.map_err(|why| unread(ADDRESS_FILE, why))?;
    let key = read_private(&folder.join(KEY_FILE), OTHERS);
    let key = key.map_err(|why| unread(KEY_FILE, why))?;
    let key: Secret = key.trim().parse().map_err(|why| {
        let file = folder.join(KEY_FILE);
        format!("{}: {why}", file.display())
    })?;
    Ok(HomeRelay {
        address: address.trim().to_owned(),
        key,
    })
}
