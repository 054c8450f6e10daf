import { beforeEach, describe, expect, it } from 'vitest'
import { operatorLocks, operatorSessions, type Operators } from '../../../edge-agent/lanes/operators.ts'
import type { OperatorRecord, Verifier } from '../../../policy/documents/store-documents.ts'
import { badgeCode, newBadgeVerifier, newStoreKey, publishedVerifier } from '../../../policy/operator-verifiers.ts'
import { virtualPlatform, type VirtualPlatform } from '../../verification/simulation/virtual/virtual-platform.ts'

/** Sign-in of operators at one agent, and its locks. */

const { random } = virtualPlatform()
const storeKey = newStoreKey(random)
const under = (base: Verifier) => publishedVerifier(base, storeKey)
/** These tests are about locks, so PINs use the faster verifier of badges. */
const petersen = {
  operatorId: `op_${'0'.repeat(26)}`,
  name: 'Frau Petersen',
  pin: under(newBadgeVerifier('471108', random)),
  badge: under(newBadgeVerifier('A'.repeat(26), random)),
}
const tran = {
  operatorId: `op_${'1'.repeat(26)}`,
  name: 'Herr Tran',
  pin: under(newBadgeVerifier('990011', random)),
  badge: under(newBadgeVerifier('B'.repeat(26), random)),
  card: under(newBadgeVerifier('04A1B2C3', random)),
}
const withoutPin = {
  operatorId: `op_${'2'.repeat(26)}`,
  name: 'Ada',
  badge: under(newBadgeVerifier('C'.repeat(26), random)),
}
const MINUTE = 60_000
const WRONG_PINS_MS = 10 * MINUTE

let platform: VirtualPlatform
let operators: Operators
let heldKey: string | undefined
beforeEach(() => {
  platform = virtualPlatform()
  heldKey = storeKey
  operators = operatorSessions(platform, () => ({ records: [petersen, tran, withoutPin], storeKey: heldKey }))
})

const sleep = (ms: number) => platform.sleep(ms)
const pin = (caller: string, value: string, { operatorId } = petersen) =>
  operators.signIn({ operatorId, pin: value }, caller)
const wrong = (caller: string, who: { operatorId: string } = petersen) =>
  operators.signIn({ operatorId: who.operatorId, pin: '000000' }, caller)
const badge = ({ operatorId }: { operatorId: string }, letter: string, caller: string) =>
  operators.signIn({ badge: badgeCode(operatorId, letter.repeat(26)) }, caller)
const times = (count: number, what: (i: number) => unknown) => {
  for (let i = 0; i < count; i++) what(i)
}

describe('five wrong PINs or badges of one caller', () => {
  it('lock only that operator for that caller, longer each time', () => {
    times(5, () => expect(wrong('till 1')).toEqual({ ok: false, reason: 'wrong' }))
    expect(pin('till 1', '471108')).toEqual({ ok: false, reason: 'locked', retryAfterSeconds: 60 })
    expect(badge(petersen, 'A', 'till 1')).toMatchObject({ reason: 'locked' })
    expect(pin('till 2', '471108')).toMatchObject({ ok: true })
    expect(pin('till 1', '990011', tran)).toMatchObject({ ok: true })
    sleep(MINUTE)
    times(5, () => wrong('till 1'))
    expect(wrong('till 1')).toEqual({ ok: false, reason: 'locked', retryAfterSeconds: 120 })
    sleep(2 * MINUTE)
    expect(pin('till 1', '471108')).toMatchObject({ ok: true })
  })

  it('no longer count for that caller after a correct one', () => {
    times(4, () => wrong('till 1'))
    expect(pin('till 1', '471108')).toMatchObject({ ok: true })
    times(4, () => wrong('till 1'))
    expect(pin('till 1', '471108')).toMatchObject({ ok: true })
  })

  it('count badges as well', () => {
    times(5, () => expect(badge(petersen, 'B', 'scanner')).toMatchObject({ reason: 'wrong' }))
    expect(badge(petersen, 'A', 'scanner')).toMatchObject({ reason: 'locked' })
    expect(badge(petersen, 'A', 'till 1')).toMatchObject({ ok: true })
  })
})

describe('one caller', () => {
  it('never locks an operator for other callers', () => {
    for (let hours = 0; hours < 48; hours++) {
      times(5, () => wrong('attacker'))
      sleep(3_600_000)
    }
    times(60, () => (wrong('attacker'), sleep(10_000)))
    expect(pin('till 1', '471108')).toMatchObject({ ok: true })
    // The errors of the attacker and eight errors of the operator together do not lock the operator either.
    times(4, () => wrong('till 1'))
    times(4, () => wrong('till 2'))
    expect(pin('till 3', '471108')).toMatchObject({ ok: true })
  })

  it('that tries unknown names locks only itself', () => {
    times(5, () => wrong('attacker'))
    times(60, (i) => wrong('attacker', { operatorId: `nobody ${i}` }))
    expect(pin('till 1', '471108')).toMatchObject({ ok: true })
    expect(pin('attacker', '471108')).toMatchObject({ reason: 'locked' })
    sleep(3_600_000)
    // Within a day, the caller must wait a minute after each wrong PIN.
    expect(wrong('attacker', { operatorId: 'nobody else' })).toMatchObject({ reason: 'wrong' })
    expect(pin('attacker', '471108')).toMatchObject({ reason: 'locked' })
    expect(badge(petersen, 'A', 'attacker')).toMatchObject({ ok: true })
    expect(pin('till 1', '471108')).toMatchObject({ ok: true })
    sleep(61_000)
    expect(pin('attacker', '471108')).toMatchObject({ ok: true })
    sleep(24 * 3_600_000)
    expect(wrong('attacker', { operatorId: 'nobody else' })).toMatchObject({ reason: 'wrong' })
    expect(pin('attacker', '471108')).toMatchObject({ ok: true })
  })

  it('of many names in ten minutes let their caller wait a minute after each', () => {
    const crew = Array.from({ length: 20 }, (_, i) => ({
      ...petersen,
      operatorId: `op_${String(i).padStart(26, '0')}`,
    }))
    operators = operatorSessions(platform, () => ({ records: crew, storeKey: heldKey }))
    times(39, (i) => expect(wrong('attacker', crew[i % 20])).toMatchObject({ reason: 'wrong' }))
    sleep(WRONG_PINS_MS)
    times(39, (i) => expect(wrong('attacker', crew[i % 20])).toMatchObject({ reason: 'wrong' }))
    expect(wrong('attacker', crew[19])).toMatchObject({ reason: 'wrong' })
    expect(pin('attacker', '471108', crew[0])).toMatchObject({ reason: 'locked', retryAfterSeconds: 60 })
    expect(pin('till 1', '471108', crew[0])).toMatchObject({ ok: true })
    sleep(MINUTE)
    expect(pin('attacker', '471108', crew[0])).toMatchObject({ ok: true })
  })

  it('cannot learn from answers which names exist', () => {
    const names = [petersen, withoutPin, { operatorId: 'op_nobody' }]
    for (const name of names) times(5, () => expect(wrong('till 1', name)).toEqual({ ok: false, reason: 'wrong' }))
    for (const name of names) expect(wrong('till 1', name)).toMatchObject({ reason: 'locked' })
    sleep(61_000)
    for (const name of names) times(5, () => wrong('till 1', name))
    sleep(61_000)
    for (const name of names) expect(wrong('till 1', name)).toMatchObject({ reason: 'locked' })
  })
})

describe('twenty errors of several callers', () => {
  it('lock the operator at this agent for 15 minutes, for all callers and for badges', () => {
    for (const caller of ['till 1', 'till 2', 'till 3']) times(5, () => wrong(caller))
    times(4, () => wrong('till 4'))
    expect(pin('till 5', '471108')).toMatchObject({ ok: true })
    wrong('till 4')
    expect(pin('till 5', '471108')).toEqual({ ok: false, reason: 'locked', retryAfterSeconds: 900 })
    expect(badge(petersen, 'A', 'till 6')).toMatchObject({ reason: 'locked' })
    expect(pin('till 5', '990011', tran)).toMatchObject({ ok: true })
    sleep(15 * MINUTE - 1)
    expect(pin('till 5', '471108')).toMatchObject({ reason: 'locked' })
    sleep(1)
    expect(pin('till 5', '471108')).toMatchObject({ ok: true })
    // After the lock, the former errors no longer count.
    times(4, () => wrong('till 6'))
    expect(pin('till 5', '471108')).toMatchObject({ ok: true })
  })

  it('lock it for two callers of ten errors each', () => {
    for (let round = 0; round < 2; round++) {
      times(5, () => wrong('till 1'))
      times(5, () => wrong('till 2'))
      sleep(MINUTE)
    }
    expect(pin('till 3', '471108')).toMatchObject({ reason: 'locked' })
  })

  it('do not lock it over more than an hour', () => {
    times(19, (i) => wrong(`till ${i % 4}`))
    sleep(3_600_000)
    wrong('till 5')
    expect(pin('till 6', '471108')).toMatchObject({ ok: true })
  })
})

describe('the tables of locks', () => {
  it('hold 500 callers, and more callers never remove an operator’s lock', () => {
    const locks = operatorLocks(platform.clock)
    times(5, () => locks.failed('op', 'first', 'known'))
    expect(locks.waitMs('op', 'first', 'known')).toBe(MINUTE)
    times(20, (i) => locks.failed('op', `caller ${i}`, 'known'))
    times(1_000, (i) => locks.failed('another', `caller ${i}`, 'known'))
    expect(locks.waitMs('op', 'anybody', 'known')).toBe(15 * MINUTE)
    sleep(15 * MINUTE)
    expect(locks.waitMs('op', 'first', 'known')).toBe(0)
  })

  it('stay within their limits for a caller with endless errors', () => {
    const locks = operatorLocks(platform.clock)
    times(20_000, (i) => locks.failed(`op ${i % 3_000}`, `caller ${i % 3}`, i % 2 ? 'known' : 'invented'))
    expect(locks.waitMs('op 2999', 'caller 4', 'known')).toBe(0)
  })
})

describe('without the store key of the policy', () => {
  it('no operator can sign in, no error counts, and sign-in works once the key arrives', () => {
    heldKey = undefined
    times(30, (i) => expect(wrong(`till ${i % 4}`)).toEqual({ ok: false, reason: 'no_store_key' }))
    expect(badge(petersen, 'A', 'till 1')).toEqual({ ok: false, reason: 'no_store_key' })
    expect(operators.signIn({ card: '04A1B2C3', readerId: 'reader' }, 'reader')).toMatchObject({
      reason: 'no_store_key',
    })
    heldKey = storeKey
    expect(pin('till 1', '471108')).toMatchObject({ ok: true })
    expect(operators.signIn({ card: '04A1B2C3', readerId: 'reader' }, 'reader')).toMatchObject({
      ok: true,
      name: 'Herr Tran',
    })
  })

  it('a store without operators answers as if the name did not exist', () => {
    operators = operatorSessions(platform, () => ({ records: [], storeKey: undefined }))
    expect(wrong('till 1')).toEqual({ ok: false, reason: 'wrong' })
  })
})

describe('cards', () => {
  it('lock only their reader if they are wrong', () => {
    const card = (number: string, readerId: string) => operators.signIn({ card: number, readerId }, readerId)
    times(5, () => expect(card('04FFFFFF', 'reader 1')).toMatchObject({ reason: 'wrong' }))
    expect(card('04A1B2C3', 'reader 1')).toMatchObject({ reason: 'locked' })
    expect(card('04A1B2C3', 'reader 2')).toMatchObject({ ok: true })
    expect(pin('till 1', '990011', tran)).toMatchObject({ ok: true })
  })
})

describe('a session', () => {
  it('ends with the PIN, badge or card that opened it, and not with another one', () => {
    let records: OperatorRecord[] = [petersen, tran, withoutPin]
    operators = operatorSessions(platform, () => ({ records, storeKey }))
    const opened = [
      pin('till 1', '990011', tran),
      badge(tran, 'B', 'till 1'),
      operators.signIn({ card: '04A1B2C3', readerId: 'reader' }, 'till 1'),
    ].map((each) => (each.ok ? each.session : ''))
    const alive = () => opened.map((session) => operators.peek(session) !== undefined)
    expect(alive()).toEqual([true, true, true])
    records = [{ ...tran, pin: under(newBadgeVerifier('112233', random)) }]
    expect(alive()).toEqual([false, true, true])
    records = [{ ...tran, badge: under(newBadgeVerifier('D'.repeat(26), random)) }]
    expect(alive()).toEqual([false, false, true])
    records = []
    expect(alive()).toEqual([false, false, false])
  })
})
