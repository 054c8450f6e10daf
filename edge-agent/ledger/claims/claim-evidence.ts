import type { Evidence } from '../../../policy/journal.ts'
import type { Outcome } from '../../../policy/vocabulary.ts'
import { OVERRIDE_PREFIX, type ClaimRequest } from './claim-request.ts'

/** The evidence of a claim for its journal row; none for an override, which uses up no right. */
export function claimEvidence(
  { redemptionId, nonce, source, rightClass, deviceId, operatorId, receipt }: ClaimRequest,
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
    },
  }
}

/** What a journal row says of an outcome: nothing of an override, which used no right up. */
export function outcomeEvidence(redemptionId: string, outcome: Outcome): { evidence?: Evidence } {
  return redemptionId.startsWith(`${OVERRIDE_PREFIX}_`) ? {} : { evidence: { kind: 'outcome', redemptionId, outcome } }
}

/** Which rights of a receipt a token's claim has used, for a cloud that should have forgotten the token. */
function receiptEvidence(
  receipt: ClaimRequest['receipt'],
  claimed: readonly number[],
): { receipt?: { cti: string; ordinals: number[] } } {
  const ordinals = claimed.flatMap((step) => receipt?.ordinals[step] ?? [])
  return receipt && ordinals.length > 0 && ordinals.length === claimed.length
    ? { receipt: { cti: receipt.cti, ordinals } }
    : {}
}
