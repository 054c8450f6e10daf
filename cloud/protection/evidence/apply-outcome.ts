import { mergeOutcomes } from '../../../policy/redemption-merge.ts'
import type { Outcome } from '../../../policy/vocabulary.ts'
import type { RedemptionRow } from '../../platform/persistence/tables/protection.ts'
import { acknowledgeOpenException, raiseException, WITHDRAWN } from '../records/exceptions.ts'
import { updateRedemption } from '../rights/redemptions.ts'
import type { UnitKey } from '../rights/rights.ts'
import { unitOf } from '../rights/settle-right.ts'
import type { EvidenceScope, EvidenceSource } from './evidence-scope.ts'
import { raiseForeignEvidence } from './foreign-evidence.ts'
import { settleUnit } from './settle-unit.ts'

/**
 * Applies the outcome of a claim: `confirmed` is final, `failed` frees the units of the claim, staff resolve `unknown`.
 * Returns false for an unknown claim. Devices without an agent choose their redemption ids, so two claims may have the
 * same id. Pass `nonce` to select one of them.
 */
export async function applyOutcome(
  scope: EvidenceScope,
  source: EvidenceSource,
  redemptionId: string,
  outcome: Outcome,
  nonce?: string,
): Promise<boolean> {
  const rows = (await scope.redemptions.ofId(redemptionId)).filter((row) => nonce === undefined || row.nonce === nonce)
  if (rows.length === 0) return false
  if (rows.length > 1) await scope.redemptions.prepare([redemptionId], [])
  const own: RedemptionRow[] = []
  for (const row of rows) if (await scope.facts.isOwn(row.agent_id, source)) own.push(row)
  const [first] = own
  if (!first) {
    const detail = `an outcome of a claim that is not this agent's`
    await raiseForeignEvidence(scope, source, { kind: 'outcome', about: redemptionId, detail })
    return true
  }
  const changed: RedemptionRow[] = []
  for (const row of own) {
    const known = row.outcome as Outcome | null
    const merged = mergeOutcomes(known, outcome)
    if (merged.isConflict) await raiseConflict(scope, source, row, outcome)
    if (row.resolved_by !== null) await updateRedemption(scope.db, row, { reported: outcome })
    else if (merged.outcome !== known) {
      await scope.redemptions.setOutcome(row, merged.outcome)
      changed.push(row)
    }
  }
  const purchases = await settleRedemptions(scope, source, changed)
  if (outcome !== 'unknown' && changed.some((row) => row.outcome === 'unknown'))
    await acknowledgeOpenException(scope.db, {
      storeId: source.storeId,
      kind: 'outcome_unknown',
      subject: redemptionId,
      by: WITHDRAWN,
      atMs: scope.nowMs,
    })
  if (outcome === 'unknown' && changed.length > 0) {
    await raiseException(scope, {
      storeId: source.storeId,
      kind: 'outcome_unknown',
      subject: redemptionId,
      detail: 'a release was claimed, and it is unknown whether the actuator moved',
      deviceId: first.device_id,
      purchaseId: purchases[0],
      nonce: first.nonce,
    })
  }
  return true
}

async function raiseConflict(
  scope: EvidenceScope,
  source: EvidenceSource,
  row: RedemptionRow,
  reported: Outcome,
): Promise<void> {
  const by = row.resolved_by === null ? 'the device reported' : 'staff saw'
  await raiseException(scope, {
    storeId: source.storeId,
    kind: 'outcome_conflict',
    subject: row.redemption_id,
    detail: `${by} ${row.outcome}, and then it was reported as ${reported}`,
    deviceId: row.device_id,
    nonce: row.nonce,
  })
}

/**
 * Updates the rights of these redemptions. `finishEvidence` later updates their purchases. Returns the purchase ids.
 */
export async function settleRedemptions(
  scope: EvidenceScope,
  source: EvidenceSource,
  changed: readonly RedemptionRow[],
): Promise<string[]> {
  const { due, redemptions } = scope
  const keys: UnitKey[] = []
  for (const row of changed) {
    const key = await unitOf(redemptions, row)
    if (!key) continue
    await settleUnit(scope, source.storeId, key, undefined)
    keys.push(key)
  }
  const purchases = [...new Set(keys.map((key) => key.purchaseId).filter((id) => id !== ''))]
  for (const purchaseId of purchases) due.purchaseIds.add(purchaseId)
  return purchases
}
