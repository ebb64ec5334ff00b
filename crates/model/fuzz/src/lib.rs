//! What a fuzzed text is put through. The ordinary tests include this file and run the corpus through it.

use titin_model::{LoadOptions, Start, load_texts};

/// Reads a text as a description; what is accepted is flattened, wired, written and read again.
pub fn description(text: &str) {
    let options = LoadOptions { start: Start::ByHand, ..LoadOptions::default() };
    let description = match load_texts(&[("fuzz", text)], &options) {
        Ok(description) => description,
        Err(report) => {
            assert!(!report.is_ok() && !report.to_string().is_empty());
            return;
        }
    };
    let network = description.network(None).expect("what was accepted can be flattened");
    for instance in network.instances().take(100) {
        let id = network.instance_id(&instance).expect("an instance has an id");
        assert_eq!(network.instance(id).as_ref(), Some(&instance));
        // A component with very many peers has as many wires.
        if network.conduit_count() < 100_000 {
            for wire in network.wiring(&instance).expect("an instance has wires").wires {
                let ends = network.conduit(wire.conduit).expect("a wire is a conduit");
                assert!(ends.sender == instance || ends.receiver == instance);
            }
        }
        network.settings.names(&instance);
    }
    for written in [description.to_ymmsl(), network.to_ymmsl()] {
        if let Err(report) = load_texts(&[("written", &written)], &options) {
            panic!("what was written is not accepted:\n{written}\n{report}");
        }
    }
}
