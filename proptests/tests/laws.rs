//! L1 – L10 of every machine, each on what it was told in a scenario that was played, and of the decoders on streams.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

use proptest::{collection::vec, prelude::*};
use turnwire_proptests::{
    config,
    laws::{check, check_decoders},
    scenario::bytes,
};

proptest! {
    #![proptest_config(config(60))]

    #[test]
    fn l1_to_l10_of_session_server_client_and_observer(data in bytes(40)) {
        prop_assert_eq!(check(&data), Ok(()));
    }
}

proptest! {
    #![proptest_config(config(400))]

    #[test]
    fn l1_to_l9_of_lines_events_and_replies(data in vec(any::<u8>(), 0..60)) {
        prop_assert_eq!(check_decoders(&data), Ok(()));
    }
}
