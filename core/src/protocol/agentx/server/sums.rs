//! What requests used and cost, for results (WIRE-012).

use alloc::vec::Vec;

use crate::protocol::agentx::policy::RecordForm;
use crate::protocol::agentx::wire::{ModelUsage, Nullable, Num, Usage as WireUsage};
use crate::protocol::member::Map;
use crate::vocab::{Cost, ModelRef, Text, Usage};

/// Usage and cost of each model, in order of first use.
#[derive(Clone, Debug, Default)]
pub(super) struct Sums {
    models: Vec<Sum>,
}

#[derive(Clone, Debug)]
struct Sum {
    /// Its name: the wire knows a model by that alone.
    model: Text,
    usage: Usage,
    money: Money,
}

/// A sum of costs. One that nobody knows makes the whole unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Money {
    /// There was nothing to pay for, as far as anybody said.
    #[default]
    Nothing,
    /// In millionths of a millionth of a US dollar.
    Known(u64),
    Unknown,
}

impl Money {
    fn plus(self, other: Money) -> Money {
        match (self, other) {
            (Money::Nothing, other) => other,
            (money, Money::Nothing) => money,
            (Money::Known(a), Money::Known(b)) => Money::Known(a.saturating_add(b)),
            (Money::Unknown, _) | (_, Money::Unknown) => Money::Unknown,
        }
    }

    fn number<'a>(self) -> Nullable<Num<'a>> {
        Nullable(match self {
            Money::Known(pico) => Some(dollars(pico)),
            Money::Nothing | Money::Unknown => None,
        })
    }
}

/// The amount in dollars, exactly.
fn dollars<'a>(pico: u64) -> Num<'a> {
    #[allow(
        clippy::cast_precision_loss,
        reason = "readers know floating numbers alone"
    )]
    let amount = pico as f64 / 1e12;
    amount.into()
}

impl Sums {
    /// A request has ended. One that failed before anything was used costs nothing.
    pub(super) fn add(
        &mut self,
        model: &ModelRef,
        usage: Option<Usage>,
        cost: &Cost,
        complete: bool,
    ) {
        let money = match cost {
            Cost::Known { pico_usd, .. } => Money::Known(*pico_usd),
            Cost::Unpriced { .. } | Cost::NotSaid if complete || usage.is_some() => Money::Unknown,
            Cost::Unpriced { .. } | Cost::NotSaid => Money::Nothing,
        };
        let usage = usage.unwrap_or_default();
        match self.models.iter_mut().find(|sum| sum.model == model.model) {
            Some(sum) => {
                sum.usage = sum.usage.plus(usage);
                sum.money = sum.money.plus(money);
            }
            None => self.models.push(Sum {
                model: model.model.clone(),
                usage,
                money,
            }),
        }
    }

    /// All usage together.
    pub(super) fn usage(&self) -> Usage {
        let usages = self.models.iter().map(|sum| sum.usage);
        usages.fold(Usage::default(), Usage::plus)
    }

    /// All costs together, in dollars.
    pub(super) fn cost<'a>(&self) -> Nullable<Num<'a>> {
        let costs = self.models.iter().map(|sum| sum.money);
        costs.fold(Money::default(), Money::plus).number()
    }

    /// The same with an entry for this model.
    pub(super) fn with(mut self, model: &ModelRef) -> Sums {
        self.add(model, None, &Cost::NotSaid, false);
        self
    }

    /// `modelUsage`; `window`: of the model in use.
    pub(super) fn by_model(&self, window: Option<u64>, max_output: u64) -> Map<'_, ModelUsage<'_>> {
        let entry = |sum: &Sum| ModelUsage {
            input_tokens: sum.usage.input.unwrap_or(0).into(),
            output_tokens: sum.usage.answer_tokens().unwrap_or(0).into(),
            cache_read_input_tokens: sum.usage.cache_read.unwrap_or(0).into(),
            cache_creation_input_tokens: sum.usage.cache_write.unwrap_or(0).into(),
            cost_usd: sum.money.number(),
            context_window: Some(window.unwrap_or(0).into()),
            max_output_tokens: Some(max_output.into()),
            ..ModelUsage::default()
        };
        Map(self
            .models
            .iter()
            .map(|sum| ((&*sum.model).into(), entry(sum)))
            .collect())
    }
}

/// `usage`, in the strict form or the provider's.
pub(super) fn usage<'a>(usage: Usage, form: RecordForm) -> WireUsage<'a> {
    let count = |tokens: Option<u64>| Some(Num::from(tokens.unwrap_or(0)));
    let mut wire = WireUsage {
        input_tokens: count(usage.input),
        cache_creation_input_tokens: count(usage.cache_write),
        cache_read_input_tokens: count(usage.cache_read),
        output_tokens: count(usage.answer_tokens()),
        ..WireUsage::default()
    };
    if form == RecordForm::Strict {
        wire.reasoning_output_tokens = count(usage.reasoning);
        wire.total_tokens = count(usage.total());
    }
    wire
}
