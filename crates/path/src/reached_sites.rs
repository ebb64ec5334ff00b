//! Sites that relays lead to. The relay of this process's site is asked to let the paths to a site through.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use titin_os::private_file::{Unread, read_ordinary, read_private};
use titin_transport::{Admission, AdmissionError, AdmissionNews, HomeRelay, Reactor};
use titin_wire::circuit::{RELAY_KEY, RunPermit};
use titin_wire::connection::{SESSION_PATIENCE, SiteAccess};
use titin_wire::{Address, EndpointId, Secret};

use crate::error::{PathError, Result};

/// The environment variable that names the folder of this site's relay.
pub const RELAY_VARIABLE: &str = "TITIN_RELAY";

/// The name by which relays know paths, in their logs.
const NAME: &str = "paths";

/// The files of a relay's folder: the address for processes of the site, and the key by which these prove themselves.
const ADDRESS_FILE: &str = "address";
const KEY_FILE: &str = "access";

/// The rights of others than the owner and his group.
const OTHERS: u32 = 0o007;

/// The sites that a process reaches by relays, as long as it has paths.
#[derive(Default)]
pub(crate) struct ReachedSites(Mutex<HashMap<String, ReachedSite>>);

struct ReachedSite {
    /// Why relays do not let paths through.
    refusals: Arc<Mutex<Vec<String>>>,
    _admission: Admission,
}

impl ReachedSites {
    /// Has the relay of this process's site let paths to another site through.
    ///
    /// # Errors
    /// If no relay is named, or it does not answer, or refuses.
    pub(crate) fn reach(&self, site: &str, reactor: &Reactor) -> Result<()> {
        let mut sites = self.lock();
        let Entry::Vacant(new) = sites.entry(site.to_owned()) else {
            return Ok(());
        };
        let relay = home_relay()?;
        let permit = RunPermit {
            run: (EndpointId::random().0 as u64).max(RELAY_KEY + 1),
            permit: Secret::random(),
            name: NAME.to_owned(),
            sites: vec![site.to_owned()],
            is_over: false,
            hops: 0,
        };
        let refusals = Arc::new(Mutex::new(Vec::new()));
        let told = refusals.clone();
        let tell = move |news| {
            if let AdmissionNews::Refused(why) = news {
                *told.lock().unwrap_or_else(PoisonError::into_inner) = why;
            }
        };
        let (address, run, secret) = (relay.address.clone(), permit.run, permit.permit.clone());
        let begun = Admission::begin(relay, permit, tell);
        let (admission, admitted) = begun.map_err(|error| {
            PathError::NotOpened(match error {
                AdmissionError::Unanswered(why) => format!(
                    "the relay of this site does not answer at {address}: {why}; `titin relay run` starts it"
                ),
                AdmissionError::Refused(why) => {
                    format!("the relay of this site refuses: {why}")
                }
            })
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
        new.insert(ReachedSite {
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
        let sites = self.lock();
        for site in addresses.iter().filter_map(Address::site) {
            let refusals = sites.get(site).map(|site| &site.refusals);
            let refusals = refusals.map(|refusals| refusals.lock());
            let refusals =
                refusals.map(|refusals| refusals.unwrap_or_else(PoisonError::into_inner));
            for refusal in refusals.iter().flat_map(|refusals| refusals.iter()) {
                why += &format!("; {refusal}");
            }
        }
        PathError::NotOpened(why)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, ReachedSite>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The relay of this process's site, whose folder is in the environment.
fn home_relay() -> Result<HomeRelay> {
    let Some(folder) = std::env::var_os(RELAY_VARIABLE).map(PathBuf::from) else {
        return Err(PathError::NotOpened(format!(
            "the environment variable {RELAY_VARIABLE} does not name the folder of this site's relay, which leads to other sites"
        )));
    };
    let unread = |name: &str, why: Unread| {
        let file = folder.join(name);
        PathError::NotOpened(format!(
            "{}: {why}. {RELAY_VARIABLE} names the folder of this site's relay, and `titin relay run` starts it",
            file.display()
        ))
    };
    let address = read_ordinary(&folder.join(ADDRESS_FILE));
    let address = address.map_err(|why| unread(ADDRESS_FILE, why))?;
    let key = read_private(&folder.join(KEY_FILE), OTHERS);
    let key = key.map_err(|why| unread(KEY_FILE, why))?;
    let key: Secret = key.trim().parse().map_err(|why| {
        let file = folder.join(KEY_FILE);
        PathError::NotOpened(format!("{}: {why}", file.display()))
    })?;
    Ok(HomeRelay {
        address: address.trim().to_owned(),
        key,
    })
}
