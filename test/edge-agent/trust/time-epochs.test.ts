import { describe, expect, it } from 'vitest'
import { DOCUMENT_KINDS } from '../../../policy/documents/kinds.ts'
import { signDocument } from '../../../policy/documents/signed-document.ts'
import { contentHash, type KeySetClaims } from '../../../policy/documents/store-documents.ts'
import { testKey, type TestKey } from '../../support/keys.ts'
import { freshness, HOUR, records, trustBench } from '../../support/trust-bench.ts'

const t = trustBench()
const { reopen, iat, keySetClaims, keySet, fresh, all } = t

describe('a time one year ahead, signed with a stolen freshness key', () => {
  const YEAR = 365 * 24 * HOUR
  const next = testKey('freshness', { seed: 8, iss: 'installation' })
  const revoked = (change: Partial<KeySetClaims> = {}) => ({
    ver: 2,
    timeEpoch: iat(),
    keys: [...records({ [freshness.record.kid]: { state: 'revoked' } }), next.record],
    ...change,
  })
  const time = (timeEpoch: number, by: TestKey = next) =>
    signDocument(
      DOCUMENT_KINDS.time,
      { aud: 'n', iat: iat(), exp: iat() + 60, timeMs: t.world.clock.wall(), timeEpoch },
      by.signer,
    )
  const named = (claims: Partial<KeySetClaims>) => ({
    keys: { epoch: 0, ver: 2, hash: contentHash(keySetClaims(claims)) },
    timeEpoch: claims.timeEpoch ?? 0,
  })
  const poison = () => {
    all()
    for (let n = 0; n < 2; n++) {
      t.world.sleep(61_000)
      t.trust.accept(fresh({ timeMs: t.world.clock.wall() + YEAR }))
    }
    expect(t.clock.now()).toEqual({ nowMs: t.world.clock.wall() + YEAR, trust: 'signed' })
  }
  const claim = (source: 'token' | 'receipt', nonce: string, exp: number) =>
    t.ledger.commits.now(() =>
      t.ledger.claims.claim({
        redemptionId: `${nonce}-${exp}`,
        source,
        nonce,
        rightClass: 'release',
        candidates: [0],
        all: false,
        exp,
        deviceId: 'd',
        nowMs: t.clock.now().nowMs,
      }),
    )

  it('is corrected by the key set that revokes the key, also after a restart: time, policy age and pruned claims', () => {
    poison()
    // The false time is after the expiry of the receipt, so pruning deletes its claim.
    claim('receipt', 'aa', iat() + 80_000)
    t.ledger.commits.now(() => t.ledger.claims.prune(Math.floor(t.clock.now().nowMs / 1_000) - 3_600))
    t.world.sleep(1_000)
    const keys = keySet(revoked())
    const epoch = iat()
    expect(t.trust.accept(keys)).toMatchObject({ why: 'refused', detail: expect.stringContaining('expired') })
    expect(t.trust.needsSignedTime).toBe(true)
    expect(t.trust.acceptTime(time(epoch), 'n')).toEqual({ taken: true, kind: 'time' })
    expect(t.clock.now()).toEqual({ nowMs: t.world.clock.wall(), trust: 'signed' })
    expect(t.trust.accept(keys)).toEqual({ taken: true, kind: 'keys' })
    expect(t.trust.needsSignedTime).toBe(false)
    expect(t.trust.stage()).toBe('expired')
    reopen()
    expect(t.trust.accept(fresh(named(revoked()), next))).toMatchObject({ taken: true })
    expect([t.trust.stage(), t.clock.now().nowMs, t.trust.lastContactMs]).toEqual([
      'fresh',
      t.world.clock.wall(),
      t.world.clock.wall(),
    ])
    expect(t.ledger.cloudGeneration.tokensSince).toBe(iat())
    expect(claim('receipt', 'aa', iat() + 80_000)).toMatchObject({ ok: false, reason: 'token_expired' })
    expect(claim('receipt', 'bb', iat() + 86_400)).toMatchObject({ ok: false })
    expect(claim('receipt', 'cc', iat() + 86_401)).toMatchObject({ ok: true })
    expect(claim('token', 'dd', iat() + 300)).toMatchObject({ ok: true })
  })

  it('is corrected with a hardware clock years ahead, if the next key was published before', () => {
    t.trust.accept(keySet({ keys: [...records(), { ...next.record, state: 'next' }] }))
    expect(
      t.trust.accept(
        fresh({
          keys: {
            epoch: 0,
            ver: 1,
            hash: contentHash(keySetClaims({ keys: [...records(), { ...next.record, state: 'next' }] })),
          },
        }),
      ),
    ).toMatchObject({ taken: true })
    t.world.sleep(HOUR)
    const [now, claims] = [t.world.clock.wall(), revoked()]
    const [keys, answer] = [keySet(claims), time(claims.timeEpoch ?? 0)]
    t.world.setWall(now + YEAR)
    t.world.reboot()
    reopen()
    expect(t.trust.accept(keys)).toMatchObject({ detail: expect.stringContaining('expired') })
    expect(t.trust.acceptTime(answer, 'n')).toEqual({ taken: true, kind: 'time' })
    expect(t.clock.now()).toEqual({ nowMs: now, trust: 'signed' })
    expect(t.trust.accept(keys)).toEqual({ taken: true, kind: 'keys' })
  })

  it('leaves the clock and claims of an agent alone that never received it', () => {
    all()
    t.world.sleep(1_000)
    const claims = revoked()
    expect(t.trust.accept(keySet(claims))).toEqual({ taken: true, kind: 'keys' })
    expect(t.trust.needsSignedTime).toBe(true)
    t.world.sleep(1_000)
    expect(t.trust.accept(fresh(named(claims), next))).toEqual({ taken: true, kind: 'fresh' })
    expect([t.clock.epoch, t.clock.now(), t.trust.needsSignedTime, t.ledger.cloudGeneration.tokensSince]).toEqual([
      claims.timeEpoch,
      { nowMs: t.world.clock.wall(), trust: 'signed' },
      false,
      0,
    ])
    // Of before.
    expect(t.trust.acceptTime(time(0), 'n')).toEqual({ taken: true, kind: 'time' })
    expect(t.clock.epoch).toBe(claims.timeEpoch)
  })

  it('cannot be repeated in an epoch that the stolen key names', () => {
    all()
    t.world.sleep(1_000)
    expect(t.trust.accept(fresh({ timeEpoch: 7 }))).toMatchObject({
      why: 'refused',
      detail: expect.stringContaining('which no key set of the root opened'),
    })
    expect(t.trust.acceptTime(time(7, freshness), 'n')).toEqual({ taken: false, why: 'known' })
    expect(t.clock.epoch).toBe(0)
  })

  it('is not corrected by a replayed document before the new key set arrives', () => {
    poison()
    const claims = revoked()
    const [keys, heads, answer] = [keySet(claims), fresh(named(claims), freshness), time(claims.timeEpoch ?? 0)]
    expect(t.trust.accept(heads)).toEqual({ taken: false, why: 'known' })
    expect(t.trust.isBehind).toBe(true)
    expect(t.trust.acceptTime(answer, 'n')).toMatchObject({ why: 'refused' })
    t.trust.accept(keys)
    expect(t.clock.now().nowMs).toBe(t.world.clock.wall() + YEAR)
    expect(t.trust.acceptTime(answer, 'n')).toMatchObject({ taken: true })
  })

  it('cannot block a key set by naming different content for it', () => {
    all()
    t.world.sleep(1_000)
    expect(t.trust.accept(fresh({ keys: { epoch: 0, ver: 2, hash: 'none' } }))).toMatchObject({ taken: true })
    expect(t.trust.accept(keySet({ ver: 2, keys: records({}) }))).toMatchObject({ why: 'refused' })
    expect(t.trust.accept(keySet(revoked()))).toEqual({ taken: true, kind: 'keys' })
  })
})
