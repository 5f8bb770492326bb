//! How a protocol writes its rules down: one entry a rule, and a key for each, so that a finding can't name none.

/// Makes the enum `Key` of a protocol's rules, and `RULES`, its catalogue.
///
/// An entry is `Name = "ID.a" Severity Needs CITE "title" "message"`, where `CITE` is a constant in scope.
macro_rules! catalogue {
    ($( $name:ident = $id:literal $severity:ident $needs:ident $cite:ident $title:literal $message:literal )*) => {
        /// The key of a rule.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Key {
            $( $name, )*
        }

        impl Key {
            /// Its entry in the catalogue.
            pub(super) const fn rule(self) -> &'static $crate::protocol::observer::Rule {
                use $crate::protocol::observer::{Needs, Rule, Severity};
                match self {
                    $( Key::$name => &Rule {
                        id: $id,
                        severity: Severity::$severity,
                        needs: Needs::$needs,
                        title: $title,
                        message: $message,
                        cite: $cite,
                    }, )*
                }
            }
        }

        /// The catalogue, in the order of the guarantees.
        pub const RULES: &[$crate::protocol::observer::Rule] = &[ $( *Key::$name.rule(), )* ];
    };
}
pub(crate) use catalogue;
