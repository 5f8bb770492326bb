//! Enums: a string, or an object of one member.

use serde::de::{self, DeserializeSeed, EnumAccess, Error as _, MapAccess, VariantAccess, Visitor};

use super::de::Elements;
use super::error::DecodeError;

type Result<T> = core::result::Result<T, DecodeError>;

/// Says what is expected where an enum's value is of a wrong type.
pub(super) struct NotAVariant<V>(pub(super) V);

impl<'de, V: Visitor<'de>> Visitor<'de> for NotAVariant<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.0.expecting(f)
    }
}

/// An object with one member: its name is the variant, its value the content.
pub(super) struct Variant<'c, 'a> {
    pub(super) elements: Elements<'c, 'a>,
}

impl<'c, 'de> EnumAccess<'de> for Variant<'c, 'de> {
    type Error = DecodeError;
    type Variant = Self;

    fn variant_seed<S: DeserializeSeed<'de>>(mut self, seed: S) -> Result<(S::Value, Self)> {
        match self.elements.next_key_seed(seed)? {
            Some(variant) => Ok((variant, self)),
            None => Err(DecodeError::custom(
                "expected an object with one member, found one with none",
            )),
        }
    }
}

impl<'de> Variant<'_, 'de> {
    fn content<S: DeserializeSeed<'de>>(mut self, seed: S) -> Result<S::Value> {
        let value = self.elements.next_value_seed(seed)?;
        if self.elements.more() {
            return Err(DecodeError::custom(
                "expected an object with one member, found more",
            ));
        }
        Ok(value)
    }
}

impl<'de> VariantAccess<'de> for Variant<'_, 'de> {
    type Error = DecodeError;

    fn unit_variant(self) -> Result<()> {
        self.content(core::marker::PhantomData::<()>)
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value> {
        self.content(seed)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value> {
        self.content(Visit {
            visitor,
            is_map: false,
        })
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        self.content(Visit {
            visitor,
            is_map: true,
        })
    }
}

/// A visitor as a seed.
struct Visit<V> {
    visitor: V,
    is_map: bool,
}

impl<'de, V: Visitor<'de>> DeserializeSeed<'de> for Visit<V> {
    type Value = V::Value;

    fn deserialize<D: de::Deserializer<'de>>(
        self,
        deserializer: D,
    ) -> core::result::Result<V::Value, D::Error> {
        if self.is_map {
            deserializer.deserialize_map(self.visitor)
        } else {
            deserializer.deserialize_seq(self.visitor)
        }
    }
}
