import type { ItemIdentifiers } from '../../../policy/item-identifiers.ts'
import type { Evidence } from '../../../policy/journal.ts'
import type { Outcome } from '../../../policy/vocabulary.ts'
import { OVERRIDE_PREFIX, type ClaimRequest } from './claim-request.ts'

/** Returns the evidence of a claim for its journal row. An override has no evidence, because it uses no right. */
export function claimEvidence(
  { redemptionId, nonce, source, rightClass, deviceId, operatorId, receipt, tag }: ClaimRequest,
  ordinals: number[],
): { evidence?: Evidence } {
  if (source === 'override') return {}
  return {
    evidence: {
      kind: 'claim',
      redemptionId,
      nonce,
      source,
      rightClass,
      ordinals,
      deviceId,
      ...(operatorId !== undefined && { operatorId }),
      ...receiptEvidence(receipt, ordinals),
      ...(source === 'item' && { item: tagOf(tag) }),
    },
  }
}

/** Returns the evidence of an outcome. An override has no evidence, because it used no right. */
export function outcomeEvidence(redemptionId: string, outcome: Outcome): { evidence?: Evidence } {
  return redemptionId.startsWith(`${OVERRIDE_PREFIX}_`) ? {} : { evidence: { kind: 'outcome', redemptionId, outcome } }
}

/** The identifiers of a tag. An item line is no tag. */
function tagOf({ itemLineId: _line, ...tag }: ItemIdentifiers = {}): Omit<ItemIdentifiers, 'itemLineId'> {
  return tag
}

/**
 * Returns the receipt rights that a token's claim used. A cloud that lost the token in a restore needs these rights.
 */
function receiptEvidence(
  receipt: ClaimRequest['receipt'],
  claimed: readonly number[],
): { receipt?: { cti: string; ordinals: number[] } } {
  const ordinals = claimed.flatMap((step) => receipt?.ordinals[step] ?? [])
  return receipt && ordinals.length > 0 && ordinals.length === claimed.length
    ? { receipt: { cti: receipt.cti, ordinals } }
    : {}
}
