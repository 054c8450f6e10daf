import { describe, expect, it } from 'vitest'
import { assertOutcome, type AuthorizeAnswer } from '../../../edge-agent/decisions/request.ts'
import { BrokenInvariant } from '../../../policy/assert.ts'
import { drivesOutput, PROTECTION_ACTIONS, type ProtectionAction } from '../../../policy/vocabulary.ts'

const answer = (action: ProtectionAction, fields: Partial<AuthorizeAnswer> = {}): AuthorizeAnswer => ({
  authorized: true,
  action,
  expiresAt: null,
  itemCount: 0,
  remaining: 0,
  eventId: null,
  offline: true,
  outcome: null,
  ...fields,
})

describe('an authorized action', () => {
  it('drives an output unless it is a status request', () => {
    expect(PROTECTION_ACTIONS.filter((action) => !drivesOutput(action))).toEqual(['verify_item_status'])
  })

  it.each(PROTECTION_ACTIONS.filter(drivesOutput))('%s is never answered without an outcome', (action) => {
    expect(() => assertOutcome(answer(action))).toThrow(BrokenInvariant)
    expect(assertOutcome(answer(action, { outcome: 'unknown' }))).toMatchObject({ outcome: 'unknown' })
    expect(assertOutcome(answer(action, { authorized: false }))).toMatchObject({ outcome: null })
  })

  it('has no outcome if it is a status request', () => {
    expect(assertOutcome(answer('verify_item_status'))).toMatchObject({ authorized: true, outcome: null })
  })
})
