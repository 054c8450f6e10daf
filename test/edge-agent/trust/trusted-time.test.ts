import { describe, expect, it } from 'vitest'
import { DOCUMENT_KINDS } from '../../../policy/documents/kinds.ts'
import { signDocument } from '../../../policy/documents/signed-document.ts'
import type { KeySetClaims } from '../../../policy/documents/store-documents.ts'
import { testKey, type TestKey } from '../../support/keys.ts'
import { freshness, HOUR, policyKey, receipt, root, token, records, trustBench } from '../../support/trust-bench.ts'

const t = trustBench()
const { reopen, iat, keySet, fresh, all } = t

it('keeps its clock if the cloud sends one wrong time', () => {
  all()
  const wrong = t.world.clock.wall() + 365 * 24 * HOUR
  expect(t.trust.accept(fresh({ timeMs: wrong }))).toMatchObject({ why: 'refused' })
  expect(t.clock.now().trust).toBe('none')
  t.world.sleep(1_000)
  expect(t.trust.accept(fresh())).toMatchObject({ taken: true })
  expect(t.clock.now()).toEqual({ nowMs: t.world.clock.wall(), trust: 'signed' })
})

it('keeps its time after a restart, and after a reboot uses the hardware clock only if it is past the high-water mark', () => {
  all()
  t.world.sleep(60_000)
  const before = t.clock.now().nowMs
  t.world.setWall(0)
  reopen()
  expect(t.clock.now()).toEqual({ nowMs: before, trust: 'signed' })
  t.world.reboot()
  reopen()
  expect(t.clock.now().trust).toBe('none')
  t.world.setWall(before + HOUR)
  t.world.reboot()
  reopen()
  expect(t.clock.now()).toEqual({ nowMs: before + HOUR, trust: 'rtc' })
})

it('accepts a time answer only for its own request', () => {
  all()
  const time = (aud: string) =>
    signDocument(
      DOCUMENT_KINDS.time,
      { aud, iat: iat(), exp: iat() + 60, timeMs: t.world.clock.wall(), timeEpoch: 0 },
      freshness.signer,
    )
  expect(t.trust.acceptTime(time('n1'), 'n1')).toEqual({ taken: true, kind: 'time' })
  expect(t.trust.acceptTime(time('n2'), 'n1')).toMatchObject({ taken: false, why: 'refused' })
})

it('reports a cloud time before an earlier signed time, because its tokens would be expired', () => {
  all()
  const time = (ms: number) =>
    signDocument(
      DOCUMENT_KINDS.time,
      { aud: 'n', iat: iat(), exp: iat() + 60, timeMs: ms, timeEpoch: 0 },
      freshness.signer,
    )
  const ahead = 2 * HOUR
  for (const verdict of [{ why: 'refused' }, { taken: true }]) {
    t.world.sleep(61_000)
    expect(t.trust.accept(fresh({ timeMs: t.world.clock.wall() + ahead }))).toMatchObject(verdict)
  }
  t.world.sleep(61_000)
  expect(t.trust.acceptTime(time(t.world.clock.wall()), 'n')).toMatchObject({
    why: 'refused',
    needsConfirmation: true,
    detail: expect.stringMatching(/its time is 72\d\d s before an earlier signed time/),
  })
  expect(t.trust.acceptTime(time(t.world.clock.wall() + ahead), 'n')).toMatchObject({ taken: true })
  // Two that have overtaken each other.
  expect(t.trust.acceptTime(time(t.world.clock.wall() + ahead - 900), 'n')).toMatchObject({ taken: true })
})

it('stores the time of an idle minute once, and a step or a lower mark at once', () => {
  all()
  const countStores = (act: () => void): number => {
    let stores = 0
    const { metadata } = t.ledger
    const set = metadata.set.bind(metadata)
    metadata.set = (name, value) => {
      stores += 1
      set(name, value)
    }
    act()
    metadata.set = set
    return stores
  }
  const idle = (minutes: number) =>
    countStores(() => {
      for (let n = 0; n < minutes * 6; n++) {
        t.world.sleep(10_000)
        expect(t.trust.accept(fresh())).toMatchObject({ taken: true })
      }
    })
  expect(idle(10)).toBeLessThanOrEqual(3 * 10)
  expect(t.clock.now()).toEqual({ nowMs: t.world.clock.wall(), trust: 'signed' })
  expect(t.trust.lastContactMs).toBe(t.world.clock.wall())
  reopen()
  expect(t.clock.now()).toEqual({ nowMs: t.world.clock.wall(), trust: 'signed' })
  expect(t.world.clock.wall() - t.trust.lastContactMs).toBeLessThan(60_000)
  const before = t.clock.now().nowMs
  expect(countStores(() => t.clock.offer({ ms: before + 1_000, epoch: 0, answersChallenge: true }))).toBe(1)
  expect(countStores(() => t.clock.offer({ ms: before, epoch: 1, answersChallenge: true }))).toBe(1)
  expect(t.clock.epoch).toBe(1)
})

it('ignores a signed time that it cannot store', () => {
  all()
  t.world.sleep(HOUR)
  const before = t.clock.now()
  const undone = new Error('undone, as when the disk is full')
  const told = () => {
    t.clock.offer({ ms: before.nowMs - 60_000, epoch: 0, answersChallenge: true })
    throw undone
  }
  expect(() => t.ledger.commits.now(told)).toThrow(undone)
  expect(t.clock.now()).toEqual(before)
  t.world.setWall(before.nowMs + HOUR)
  t.world.reboot()
  reopen()
  expect(t.clock.now()).toEqual({ nowMs: before.nowMs + HOUR, trust: 'rtc' })
  expect(() => t.ledger.commits.now(told)).toThrow(undone)
  expect(t.clock.now()).toEqual({ nowMs: before.nowMs + HOUR, trust: 'rtc' })
})

describe('with a hardware clock years ahead', () => {
  const YEARS = 2 * 365 * 24 * HOUR
  const newKey = testKey('freshness', { seed: 42, iss: 'installation' })
  const next = (change: Partial<KeySetClaims> = {}) =>
    keySet({ ver: 2, keys: [token, receipt, policyKey, newKey].map((k) => k.record), ...change })
  const time = (by: TestKey, ms = t.world.clock.wall()) =>
    signDocument(DOCUMENT_KINDS.time, { aud: 'n', iat: iat(), exp: iat() + 60, timeMs: ms, timeEpoch: 0 }, by.signer)
  /** Signed while the wall clock was right; accepted once it is not. */
  const bootAhead = <T>(signed: () => T): T => {
    all()
    t.world.sleep(HOUR)
    const documents = signed()
    t.world.setWall(t.world.clock.wall() + YEARS)
    t.world.reboot()
    reopen()
    expect(t.clock.now().trust).toBe('rtc')
    return documents
  }

  it('verifies the time with a newer key set that its clock rejects, then accepts that key set', () => {
    const now = t.world.clock.wall() + HOUR
    const [keys, answer] = bootAhead(() => [next(), time(newKey)] as const)
    expect(t.trust.acceptTime(answer, 'n')).toMatchObject({ detail: expect.stringContaining('unknown_key') })
    expect(t.trust.accept(keys)).toMatchObject({ why: 'refused', detail: expect.stringContaining('expired') })
    expect(t.trust.acceptTime(answer, 'n')).toEqual({ taken: true, kind: 'time' })
    expect(t.clock.now()).toEqual({ nowMs: now, trust: 'signed' })
    expect(t.trust.accept(keys)).toEqual({ taken: true, kind: 'keys' })
  })

  it('accepts no other document of those keys, and no time outside the validity of their set', () => {
    const [keys, heads, before, after, other] = bootAhead(
      () =>
        [
          next(),
          fresh({}, newKey),
          time(newKey, t.world.clock.wall() - 30_000),
          time(newKey, t.world.clock.wall() + 86_400_000),
          time(token),
        ] as const,
    )
    t.trust.accept(keys)
    const now = t.clock.now()
    expect(t.trust.accept(heads)).toMatchObject({ detail: expect.stringContaining('unknown_key') })
    for (const answer of [before, after, other])
      expect(t.trust.acceptTime(answer, 'n')).toMatchObject({ taken: false, why: 'refused' })
    expect(t.clock.now()).toEqual(now)
  })

  it.each<[string, Partial<KeySetClaims>, TestKey]>([
    ['is not signed by the root', {}, policyKey],
    ['is not newer than the held one', { ver: 1 }, root],
  ])('does not hold a key set for the time check that %s', (_name, change, by) => {
    const [keys, answer] = bootAhead(
      () => [keySet({ ver: 2, keys: [newKey.record], ...change }, by), time(newKey)] as const,
    )
    expect(t.trust.accept(keys)).toMatchObject({ why: 'refused' })
    expect(t.trust.acceptTime(answer, 'n')).toMatchObject({ taken: false, why: 'refused' })
  })

  it('holds no such key set while its own time is signed', () => {
    all()
    const [keys, answer] = [next({ iat: iat() - 200, exp: iat() - 100 }), time(newKey, t.world.clock.wall() - 150_000)]
    expect(t.trust.accept(keys)).toMatchObject({ detail: expect.stringContaining('expired') })
    expect(t.trust.acceptTime(answer, 'n')).toMatchObject({ detail: expect.stringContaining('unknown_key') })
  })

  it('verifies nothing with a revoked key, even if a newer set lists it as active', () => {
    const stolen = { ...newKey.record, state: 'revoked' as const }
    const [keys, answer] = bootAhead(() => {
      t.trust.accept(keySet({ ver: 2, keys: records().concat(stolen) }))
      return [next({ ver: 3 }), time(newKey)] as const
    })
    expect(t.trust.accept(keys)).toMatchObject({ detail: expect.stringContaining('expired') })
    expect(t.trust.acceptTime(answer, 'n')).toMatchObject({ taken: false, why: 'refused' })
  })
})
