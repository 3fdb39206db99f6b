//! Trimming evidence: what a pack holds of tests whose time is over goes, the
//! rest stays readable. A pack is written with failures first, so what stays
//! is mostly its beginning: that is copied as it is and offsets do not change;
//! what lies behind the first frame that goes is copied behind it and pointed
//! at anew. What stays of packs that share an object shares one again. Objects
//! first, rows second: until the transaction that points elsewhere everything
//! is read from the old object.

use std::collections::{BTreeMap, BTreeSet};

use callboard_domain::attempts::{AttemptSet, EvidenceSlice};
use callboard_domain::ids::{ExecutionId, PackId, ProjectId, RunId};
use callboard_domain::retention::OutcomeClass;
use callboard_domain::time::Timestamp;
use callboard_store::deletions::ReceiptRow;
use callboard_store::evidence::{self, PackPlace};
use callboard_store::objects::ObjectWriter;
use callboard_store::retention::due;
use callboard_store::retention::trimming::{self, PackRow, Pointing};
use callboard_store::{Session, StoreError, runs, unclaimed};
use futures::StreamExt as _;

use super::dating::policy_of;
use super::exempt::Exempt;
use super::sweep::Held;
use crate::{Context, Result};

/// Executions read together.
const BATCH: i64 = 5_000;

/// What is to be done with the evidence of a run.
pub(super) struct Plan {
    project: ProjectId,
    run: RunId,
    /// The state of the run it was made for.
    version: i64,
    packs: Vec<(PackRow, Fate)>,
    /// Where slices go; those that are not here stay.
    moves: BTreeMap<EvidenceSlice, Option<EvidenceSlice>>,
    /// When evidence of the run is due again.
    pub(super) next: Option<Timestamp>,
}

/// What becomes of a pack.
enum Fate {
    /// Nothing of it is left.
    Goes,
    /// Something is left.
    Shrinks(Rest),
    /// It was written anew, or has to be: what is kept beside its row goes with the row.
    Shrunk { by: PackRow, bytes: Vec<u8> },
}

/// What stays of a pack: its first bytes, and slices behind them.
struct Rest {
    prefix: u64,
    behind: Vec<EvidenceSlice>,
    slices: i64,
}

/// Plans what is due of a run; `None` when the run is on its way out.
pub(super) async fn plan(
    ctx: &Context,
    project: ProjectId,
    run: RunId,
    now: Timestamp,
    later: Timestamp,
) -> Result<Option<Plan>> {
    let mut session = ctx.store.db().read().await?;
    let Some(row) = runs::get(&mut session, project, run).await? else { return Ok(None) };
    let Some((owner, policy)) = policy_of(&mut session, project).await? else { return Ok(None) };
    let exempt = Exempt::load(&mut session, &policy, &owner, &row).await?;
    let ends = OutcomeClass::ALL.map(|class| (class, policy.evidence.end(class, row.order_at)));
    let due: BTreeSet<OutcomeClass> =
        ends.iter().filter(|(_, end)| end.is_some_and(|end| end <= now)).map(|(class, _)| *class).collect();
    let next = ends.iter().filter_map(|(_, end)| end.filter(|end| *end > now)).min();
    let mut plan =
        Plan { project, run, version: row.version, packs: Vec::new(), moves: BTreeMap::new(), next };
    if exempt.whole.is_some() {
        plan.next = Some(later);
        return Ok(Some(plan));
    }
    let mut used: BTreeMap<PackId, Used> = BTreeMap::new();
    let (mut after, mut holds_back) = (None, false);
    loop {
        let rows = trimming::pointing(&mut session, project, run, after, BATCH).await?;
        let Some(last) = rows.last() else { break };
        after = Some(last.id);
        for pointing in &rows {
            let is_due = due.contains(&OutcomeClass::from_outcome(pointing.outcome));
            let goes = is_due && !exempt.holds(pointing.id);
            let slices = slices(pointing)?;
            holds_back |= is_due && !goes && !slices.is_empty();
            for slice in slices {
                let of_pack = used.entry(slice.pack).or_default();
                if goes {
                    of_pack.goes.insert(slice)
                } else {
                    of_pack.stays.insert(slice)
                };
            }
        }
    }
    if holds_back {
        plan.next = Some(next.map_or(later, |next| next.min(later)));
    }
    let mut packs = Vec::new();
    for pack in trimming::packs(&mut session, project, run).await? {
        let Used { stays, goes } = used.remove(&pack.id).unwrap_or_default();
        let fate = fate(&stays, &goes, &mut plan.moves)?;
        packs.push((pack, fate));
    }
    plan.packs = with_neighbours(packs)?;
    Ok(Some(plan))
}

/// The packs that change. One that could stay as it is moves along when the
/// object it lies in is given up.
fn with_neighbours(packs: Vec<(PackRow, Option<Fate>)>) -> Result<Vec<(PackRow, Fate)>> {
    let given_up: BTreeSet<String> =
        packs.iter().filter(|(_, fate)| fate.is_some()).filter_map(|(pack, _)| key_of(pack)).collect();
    let mut changing = Vec::new();
    for (pack, fate) in packs {
        match fate {
            Some(fate) => changing.push((pack, fate)),
            None if key_of(&pack).is_some_and(|key| given_up.contains(&key)) => {
                let prefix =
                    u64::try_from(pack.size).map_err(|_| StoreError::Damaged("the size of a pack"))?;
                let rest = Rest { prefix, behind: Vec::new(), slices: pack.slices };
                changing.push((pack, Fate::Shrinks(rest)));
            }
            None => {}
        }
    }
    Ok(changing)
}

/// Key of the object a pack lies in.
fn key_of(pack: &PackRow) -> Option<String> {
    match &pack.place {
        PackPlace::Row => None,
        PackPlace::Object { key, .. } => Some(key.clone()),
    }
}

/// The slices of a pack that rows point at, by their place.
#[derive(Default)]
struct Used {
    stays: BTreeSet<EvidenceSlice>,
    goes: BTreeSet<EvidenceSlice>,
}

fn slices(pointing: &Pointing) -> Result<BTreeSet<EvidenceSlice>> {
    let mut slices: BTreeSet<EvidenceSlice> = pointing.evidence.into_iter().collect();
    if let Some(mut attempts) = attempts(pointing)? {
        attempts.move_evidence(|slice| {
            slices.insert(slice);
            Some(slice)
        });
    }
    Ok(slices)
}

fn attempts(pointing: &Pointing) -> Result<Option<AttemptSet>> {
    let attempts = pointing.attempts.as_deref().map(AttemptSet::from_json).transpose();
    Ok(attempts.map_err(|_| StoreError::Damaged("the attempts of an execution"))?)
}

/// What becomes of a pack; `None` when it stays as it is.
fn fate(
    stays: &BTreeSet<EvidenceSlice>,
    goes: &BTreeSet<EvidenceSlice>,
    moves: &mut BTreeMap<EvidenceSlice, Option<EvidenceSlice>>,
) -> Result<Option<Fate>> {
    moves.extend(goes.iter().map(|slice| (*slice, None)));
    if stays.is_empty() {
        return Ok(Some(Fate::Goes));
    }
    let Some(first) = goes.first().map(|slice| slice.offset) else { return Ok(None) };
    let (before, behind): (Vec<EvidenceSlice>, Vec<EvidenceSlice>) =
        stays.iter().partition(|slice| slice.offset < first);
    let prefix = before.last().map_or(0, |slice| slice.offset + slice.length);
    let mut end = prefix;
    for slice in &behind {
        moves.insert(*slice, Some(EvidenceSlice { offset: end, ..*slice }));
        end += slice.length;
    }
    let prefix = u64::try_from(prefix).map_err(|_| StoreError::Damaged("an evidence offset"))?;
    let slices = i64::try_from(stays.len()).unwrap_or(i64::MAX);
    Ok(Some(Fate::Shrinks(Rest { prefix, behind, slices })))
}

impl Plan {
    /// Whether there is nothing to do yet.
    pub(super) fn changes_nothing(&self) -> bool {
        self.packs.is_empty()
    }

    /// Writes the objects that take the place of others.
    pub(super) async fn write(mut self, ctx: &Context, now: Timestamp) -> Result<Self> {
        let mut of_object: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (at, (pack, fate)) in self.packs.iter_mut().enumerate() {
            let Fate::Shrinks(rest) = fate else { continue };
            if let Some(key) = key_of(pack) {
                of_object.entry(key).or_default().push(at);
                continue;
            }
            let mut session = ctx.store.db().read().await?;
            let bytes = rest.kept_bytes(&trimming::bytes(&mut session, self.project, pack.id).await?)?;
            let size = i64::try_from(bytes.len()).unwrap_or(i64::MAX);
            let by = PackRow { id: pack.id, place: PackPlace::Row, size, slices: rest.slices };
            *fate = Fate::Shrunk { by, bytes };
        }
        for members in of_object.into_values() {
            self.write_object(ctx, &members, now).await?;
        }
        Ok(self)
    }

    /// Writes what stays of packs that share an object.
    async fn write_object(&mut self, ctx: &Context, members: &[usize], now: Timestamp) -> Result<()> {
        let mut session = ctx.store.db().begin().await?;
        let announced = evidence::announce(&mut session, self.project, self.run, now).await?;
        session.commit().await?;
        let mut object = ctx.store.objects().writer(announced.key())?;
        let written = self.write_members(ctx, members, announced.key(), &mut object).await;
        if written.is_err() {
            object.abort().await;
        }
        written
    }

    async fn write_members(
        &mut self,
        ctx: &Context,
        members: &[usize],
        key: &str,
        object: &mut ObjectWriter,
    ) -> Result<()> {
        let mut base = 0;
        for at in members {
            let (pack, fate) = &mut self.packs[*at];
            let Fate::Shrinks(rest) = fate else { continue };
            let size = rest.copy(ctx, pack, object).await?;
            let place = PackPlace::Object { key: key.to_owned(), base };
            let by = PackRow { id: pack.id, place, size, slices: rest.slices };
            *fate = Fate::Shrunk { by, bytes: Vec::new() };
            base += size;
        }
        Ok(object.finish().await?)
    }

    /// Points at the new objects and gives up the old ones. The run is locked
    /// and must be as it was planned for.
    pub(super) async fn apply(
        self,
        session: &mut Session,
        held: &Held,
        mut receipt: ReceiptRow,
        now: Timestamp,
    ) -> Result<ReceiptRow> {
        if held.run.version != self.version || held.exempt.whole.is_some() {
            return Err(StoreError::Busy("a run that changed while its evidence was trimmed").into());
        }
        self.point(session).await?;
        let (mut new, mut old) = (BTreeSet::new(), BTreeSet::new());
        for (pack, fate) in &self.packs {
            let left = match fate {
                Fate::Goes => {
                    trimming::delete(session, self.project, pack).await?;
                    0
                }
                Fate::Shrunk { by, bytes } if by.place == PackPlace::Row => {
                    trimming::replace_bytes(session, self.project, pack, by, bytes).await?;
                    by.size
                }
                Fate::Shrunk { by, .. } => {
                    trimming::replace(session, self.project, pack, by).await?;
                    new.extend(key_of(by));
                    by.size
                }
                Fate::Shrinks(_) => return Err(StoreError::Damaged("a pack that was not written").into()),
            };
            old.extend(key_of(pack));
            receipt.objects.add(0, pack.size - left);
        }
        let fewer = i64::try_from(old.len()).unwrap_or(0) - i64::try_from(new.len()).unwrap_or(0);
        receipt.objects.add(fewer, 0);
        for key in &new {
            unclaimed::claim(session, key, now).await?;
        }
        for key in &old {
            unclaimed::abandon_to(session, self.project, key, receipt.id, now).await?;
        }
        due::move_evidence(session, self.project, self.run, self.next).await?;
        let gone = self.moves.values().filter(|to| to.is_none()).count();
        receipt.rows.other += i64::try_from(gone).unwrap_or(i64::MAX);
        Ok(receipt)
    }

    async fn point(&self, session: &mut Session) -> Result<()> {
        let place = |slice: EvidenceSlice| self.moves.get(&slice).copied().unwrap_or(Some(slice));
        let mut after: Option<ExecutionId> = None;
        loop {
            let rows = trimming::pointing(session, self.project, self.run, after, BATCH).await?;
            let Some(last) = rows.last() else { return Ok(()) };
            after = Some(last.id);
            let mut cleared = Vec::new();
            for row in rows {
                let evidence = row.evidence.and_then(place);
                match attempts(&row)? {
                    None if evidence.is_none() => cleared.push(row.id.get()),
                    None if evidence == row.evidence => {}
                    None => {
                        trimming::point(session, self.project, self.run, &Pointing { evidence, ..row })
                            .await?;
                    }
                    Some(mut attempts) => {
                        attempts.move_evidence(place);
                        let after = Pointing { evidence, attempts: attempts.to_json(), ..row.clone() };
                        if after != row {
                            trimming::point(session, self.project, self.run, &after).await?;
                        }
                    }
                }
            }
            trimming::clear(session, self.project, self.run, cleared).await?;
        }
    }
}

impl Rest {
    /// What stays of a pack's bytes.
    fn kept_bytes(&self, bytes: &[u8]) -> Result<Vec<u8>> {
        let part = |from: i64, to: i64| {
            let range = usize::try_from(from).ok()?..usize::try_from(to).ok()?;
            bytes.get(range)
        };
        let prefix = i64::try_from(self.prefix).unwrap_or(i64::MAX);
        let behind = self.behind.iter().map(|slice| part(slice.offset, slice.offset + slice.length));
        let parts: Option<Vec<&[u8]>> = std::iter::once(part(0, prefix)).chain(behind).collect();
        Ok(parts.ok_or(StoreError::Damaged("an evidence offset"))?.concat())
    }

    /// Copies what stays of a pack behind what an object holds already; answers
    /// how many bytes that are.
    async fn copy(&self, ctx: &Context, pack: &PackRow, object: &mut ObjectWriter) -> Result<i64> {
        let PackPlace::Object { key, base } = &pack.place else {
            return Err(StoreError::Damaged("a pack without an object").into());
        };
        let at =
            |place: i64| u64::try_from(base + place).map_err(|_| StoreError::Damaged("an evidence offset"));
        let objects = ctx.store.objects();
        let mut size = 0_i64;
        if self.prefix > 0 {
            let start = at(0)?;
            let mut bytes = objects.stream(key, Some(start..start + self.prefix)).await?;
            while let Some(chunk) = bytes.next().await {
                let chunk = chunk?;
                size += i64::try_from(chunk.len()).unwrap_or(i64::MAX);
                object.write(&chunk).await?;
            }
        }
        for slice in &self.behind {
            let range = at(slice.offset)?..at(slice.offset + slice.length)?;
            object.write(&objects.get_range(key, range).await?).await?;
            size += slice.length;
        }
        Ok(size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slice(offset: i64, length: i64) -> EvidenceSlice {
        EvidenceSlice { pack: PackId(1), offset, length }
    }

    #[test]
    fn what_stays_before_the_first_that_goes_keeps_its_place() {
        let stays = BTreeSet::from([slice(0, 10), slice(10, 5), slice(30, 7), slice(50, 3)]);
        let goes = BTreeSet::from([slice(15, 15), slice(37, 13)]);
        let mut moves = BTreeMap::new();
        let fate = fate(&stays, &goes, &mut moves).unwrap();
        let Some(Fate::Shrinks(Rest { prefix, behind, slices })) = fate else { panic!("it shrinks") };
        assert_eq!((prefix, behind, slices), (15, vec![slice(30, 7), slice(50, 3)], 4));
        let expected = [
            (slice(15, 15), None),
            (slice(37, 13), None),
            (slice(30, 7), Some(slice(15, 7))),
            (slice(50, 3), Some(slice(22, 3))),
        ];
        assert_eq!(moves, BTreeMap::from(expected));
    }

    #[test]
    fn a_pack_goes_when_nothing_of_it_stays_and_stays_when_nothing_goes() {
        let some = BTreeSet::from([slice(0, 10)]);
        let mut moves = BTreeMap::new();
        assert!(matches!(fate(&BTreeSet::new(), &some, &mut moves).unwrap(), Some(Fate::Goes)));
        assert!(fate(&some, &BTreeSet::new(), &mut moves).unwrap().is_none());
    }
}
