import type { Statement } from 'better-sqlite3'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { openItemFile } from '../../edge-agent/items/database.ts'
import { openReplica, type Replica } from '../../edge-agent/items/replica.ts'
import { LedgerFull } from '../../edge-agent/ledger/commit.ts'
import { openLedgerFile } from '../../edge-agent/ledger/database.ts'
import { openLedger, type Ledger, type OpenLedgerFile } from '../../edge-agent/ledger/ledger.ts'
import { takeOver } from '../../edge-agent/link/take-over.ts'
import { openAgentClock, type AgentClock } from '../../edge-agent/trust/clock.ts'
import type { Identity } from '../../edge-agent/trust/identity.ts'
import { openTrust, type Trust } from '../../edge-agent/trust/trust.ts'
import type { ItemsClaims } from '../../policy/documents/item-documents.ts'
import { DOCUMENT_KINDS } from '../../policy/documents/kinds.ts'
import { signDocument } from '../../policy/documents/signed-document.ts'
import { contentHash, type DenyClaims, type FreshClaims, type KeySetClaims, type PolicyClaims } from '../../policy/documents/store-documents.ts'
import { DEFAULT_POLICY } from '../../policy/store-policy.ts'
import { virtualPlatform, type VirtualPlatform } from '../../simulators/world/virtual-platform.ts'
import { temporaryFolder } from '../support/databases.ts'
import { testKey, type TestKey } from '../support/keys.ts'

const START = Date.UTC(2026, 10, 20, 9)
const HOUR = 3_600_000

/** Commits find the disk full once there is no room. */
function fullAfter(connection: ReturnType<OpenLedgerFile>, hasRoom: () => boolean): ReturnType<OpenLedgerFile> {
  const prepare = connection.prepare.bind(connection) as (sql: string) => Statement
  const watched = (sql: string) => {
    const statement = prepare(sql)
    if (sql !== 'COMMIT') return statement
    const run = statement.run.bind(statement)
    const runOrFail = () => {
      if (hasRoom()) return run()
      throw Object.assign(new Error('as planned'), { code: 'SQLITE_FULL' })
    }
    return Object.defineProperty(statement, 'run', { value: runOrFail })
  }
  return Object.defineProperty(connection, 'prepare', { value: watched })
}

describe('what an agent believes', () => {
  let folder: string
  let world: VirtualPlatform
  let ledger: Ledger
  let clock: AgentClock
  let trust: Trust
  let items: Replica
  const root = testKey('root')
  const [token, receipt, policyKey, freshness] = [testKey('token'), testKey('receipt'), testKey('policy', { iss: 'installation' }), testKey('freshness', { iss: 'installation' })]
  const identity: Identity = { agentId: 'agt_1', storeId: 'st_1', tenant: 'acc_1.test', ledgerId: 'led_1', generation: 1, cloud: 'https://x', mqttUrl: 'mqtt://x', rootX: root.record.x, x: root.record.x, secret: '' }

  const open = (openFile?: OpenLedgerFile, who = identity) => {
    ledger = openLedger({
      open: openFile,
      file: join(folder, 'ledger.db'),
      ledgerId: 'led_1',
      generation: 1,
      onFailure: (failure) => {
        throw failure
      },
    })
    clock = openAgentClock(ledger, world.clock)
    items = openReplica({ disk: openItemFile(join(folder, 'items.db'), (error) => { throw error }), platform: world, log: { info: () => undefined, warn: () => undefined, error: () => undefined } })
    trust = openTrust(who, ledger, clock, items)
  }
  const close = () => {
    items.close()
    ledger.close()
  }
  const reopen = () => {
    close()
    open()
  }
  beforeEach(() => {
    folder = temporaryFolder('trust')
    world = virtualPlatform({ startMs: START })
    open()
  })
  afterEach(() => {
    close()
    rmSync(folder, { recursive: true, force: true })
  })

  const iat = () => Math.floor(world.clock.wall() / 1_000)
  const keySetClaims = (change: Partial<KeySetClaims> = {}): KeySetClaims => ({ aud: 'acc_1.test', iat: iat(), exp: iat() + 86_400, epoch: 0, ver: 1, keys: [token, receipt, policyKey, freshness].map((k) => k.record), ...change })
  const keySet = (change: Partial<KeySetClaims> = {}, by: TestKey = root) => signDocument(DOCUMENT_KINDS.keys, keySetClaims(change), by.signer)
  const policyClaims = (change: Partial<PolicyClaims> = {}): PolicyClaims => ({
    storeName: 'Hafencity',
    iss: 'acc_1.test',
    aud: 'st_1',
    iat: iat(),
    exp: iat() + 80 * 3_600,
    epoch: 0,
    ver: 1,
    securityTagMode: 'rfid',
    policy: DEFAULT_POLICY,
    devices: [],
    operators: [],
    ...change,
  })
  const policy = (change: Partial<PolicyClaims> = {}, by: TestKey = policyKey) => signDocument(DOCUMENT_KINDS.policy, policyClaims(change), by.signer)
  const fresh = (change: Partial<FreshClaims> = {}, by: TestKey = freshness) => {
    const heads = { keys: { epoch: 0, ver: 1, hash: contentHash(keySetClaims()) }, policy: { epoch: 0, ver: 1, hash: contentHash(policyClaims()) }, deny: { epoch: 0, ver: 0 }, items: { epoch: 0, ver: 0, floor: 0 } }
    return signDocument(DOCUMENT_KINDS.fresh, { aud: 'st_1', iat: iat(), exp: iat() + 80 * 3_600, timeMs: world.clock.wall(), timeEpoch: 0, cloudGeneration: 1, ...heads, ...change }, by.signer)
  }
  const deny = (after: number, ver: number, entries: DenyClaims['entries'], by: TestKey = freshness) =>
    signDocument(DOCUMENT_KINDS.deny, { aud: 'st_1', iat: iat(), exp: iat() + 3_600, epoch: 0, after, ver, entries }, by.signer)
  const all = () => [keySet(), fresh(), policy()].map((d) => trust.accept(d))

  it('takes keys by the root, then time, then policy, and keeps them over a restart', () => {
    expect(all()).toEqual([
      { taken: true, kind: 'keys' },
      { taken: true, kind: 'fresh' },
      { taken: true, kind: 'policy' },
    ])
    expect(trust.stage()).toBe('fresh')
    reopen()
    expect(trust.policy?.ver).toBe(1)
    expect(trust.keys.size).toBe(4)
    expect(trust.stage()).toBe('fresh')
    expect(trust.have()).toEqual({ keys: [0, 1], policy: [0, 1], deny: [0, 0], items: [0, 0] })
  })

  it.each<[string, () => string]>([
    ['keys signed by anything but the root', () => keySet({ ver: 2 }, policyKey)],
    ['keys of another account', () => keySet({ ver: 2, aud: 'acc_2.test' })],
    ['a policy signed by the root', () => policy({ ver: 2 }, root)],
    ['a policy signed by the freshness key', () => policy({ ver: 2 }, freshness)],
    ['a policy of another store', () => policy({ ver: 2, aud: 'st_2' })],
    ['a policy without signature', () => `${policy({ ver: 2 }).split('.').slice(0, 2).join('.')}.`],
    ['a policy with a claim more', () => signDocument(DOCUMENT_KINDS.policy, { ...policyClaims({ ver: 2 }), extra: 1 } as PolicyClaims, policyKey.signer)],
    ['a policy that has expired', () => policy({ ver: 2, iat: iat() - 81 * 3_600, exp: iat() - 3_600 })],
    ['a policy from the future', () => policy({ ver: 2, iat: iat() + 60, exp: iat() + 3_600 })],
    ['a freshness of another store', () => fresh({ aud: 'st_2' })],
    ['a freshness signed by the token key', () => fresh({}, token)],
    ['a token', () => signDocument(DOCUMENT_KINDS.authorization, { aud: 'st_1', iat: iat(), exp: iat() + 60 }, token.signer)],
    ['nonsense', () => 'nonsense'],
    ['a flood', () => 'x'.repeat(300_000)],
  ])('refuses %s', (_name, document) => {
    all()
    expect(trust.accept(document())).toMatchObject({ taken: false, why: 'refused' })
    expect(trust.policy?.ver).toBe(1)
  })

  it('refuses an older version, and the same version that says something else, also after a restart', () => {
    all()
    expect(trust.accept(policy({ ver: 3 }))).toEqual({ taken: true, kind: 'policy' })
    expect(trust.accept(keySet({ ver: 2 }))).toEqual({ taken: true, kind: 'keys' })
    for (const again of [() => undefined, reopen]) {
      again()
      expect(trust.accept(policy({ ver: 2 }))).toMatchObject({ why: 'refused', detail: expect.stringContaining('older') })
      expect(trust.accept(policy({ ver: 3, securityTagMode: 'station' }))).toMatchObject({ why: 'refused', detail: expect.stringContaining('something else') })
      expect(trust.accept(keySet({ ver: 1 }))).toMatchObject({ why: 'refused' })
      expect(trust.accept(policy({ ver: 3, iat: iat() + 1 }))).toEqual({ taken: false, why: 'known' })
    }
    expect(trust.accept(policy({ epoch: 1, ver: 1 }))).toEqual({ taken: true, kind: 'policy' })
  })

  it('no longer believes what a revoked key signs', () => {
    all()
    const revoked = { ...policyKey.record, state: 'revoked' as const }
    expect(trust.accept(keySet({ ver: 2, keys: [token.record, receipt.record, revoked, freshness.record] }))).toMatchObject({ taken: true })
    expect(trust.accept(policy({ ver: 2 }))).toMatchObject({ why: 'refused', detail: expect.stringContaining('key_revoked') })
  })

  it('believes no stolen key until the next start because the disk was full as it heard of the revocation', () => {
    // The next so many commits work.
    let room = Number.POSITIVE_INFINITY
    close()
    open((file) => fullAfter(openLedgerFile(file), () => room-- > 0))
    all()
    const revokedToken = { ...token.record, state: 'revoked' as const }
    const revocation = keySet({ ver: 2, keys: [revokedToken, receipt.record, policyKey.record, freshness.record] })
    for (room = 0; trust.keys.get(token.record.kid)?.state !== 'revoked' && room < 5; room++) {
      const granted = room
      try {
        trust.accept(revocation)
      } catch (error) {
        expect(error).toBeInstanceOf(LedgerFull)
      }
      room = granted
    }
    room = Number.POSITIVE_INFINITY
    trust.accept(revocation)
    expect(trust.keys.get(token.record.kid)?.state).toBe('revoked')
    // Nor does a cloud that was put back make it good again.
    for (const again of [() => undefined, reopen]) {
      again()
      trust.accept(keySet({ epoch: 5 }))
      expect(trust.keys.get(token.record.kid)?.state).toBe('revoked')
      expect(trust.forgottenRevocations).toEqual([revocation])
    }
  })

  it('ages without word from the cloud, and only a freshness that names this very policy makes it young', () => {
    all()
    world.sleep(16 * 60_000)
    expect(trust.stage()).toBe('stale')
    trust.accept(fresh({ policy: { epoch: 0, ver: 2, hash: 'another' } }))
    expect(trust.stage()).toBe('stale')
    expect(trust.isBehind).toBe(true)
    world.sleep(1_000)
    trust.accept(fresh())
    expect(trust.stage()).toBe('fresh')
    world.sleep(81 * HOUR)
    expect(trust.stage()).toBe('expired')
  })

  it('is not frozen young by an old freshness that is shown again and again', () => {
    all()
    const old = fresh()
    world.sleep(20 * 60_000)
    expect(trust.accept(old)).toEqual({ taken: false, why: 'known' })
    expect(trust.stage()).toBe('stale')
    reopen()
    trust.accept(old)
    expect(trust.stage()).toBe('stale')
  })

  it('does not let one wrong time from the cloud poison its clock', () => {
    all()
    const wrong = world.clock.wall() + 365 * 24 * HOUR
    expect(trust.accept(fresh({ timeMs: wrong }))).toMatchObject({ why: 'refused' })
    expect(clock.now().trust).toBe('none')
    world.sleep(1_000)
    expect(trust.accept(fresh())).toMatchObject({ taken: true })
    expect(clock.now()).toEqual({ nowMs: world.clock.wall(), trust: 'signed' })
  })

  it('keeps its time over a restart of the process, and over a reboot takes the real-time clock only when that is past the mark', () => {
    all()
    world.sleep(60_000)
    const before = clock.now().nowMs
    world.setWall(0)
    reopen()
    expect(clock.now()).toEqual({ nowMs: before, trust: 'signed' })
    world.reboot()
    reopen()
    expect(clock.now().trust).toBe('none')
    world.setWall(before + HOUR)
    world.reboot()
    reopen()
    expect(clock.now()).toEqual({ nowMs: before + HOUR, trust: 'rtc' })
  })

  it('takes the answer to its own question for the time, and no other', () => {
    all()
    const time = (aud: string) => signDocument(DOCUMENT_KINDS.time, { aud, iat: iat(), exp: iat() + 60, timeMs: world.clock.wall(), timeEpoch: 0 }, freshness.signer)
    expect(trust.acceptTime(time('n1'), 'n1')).toEqual({ taken: true, kind: 'time' })
    expect(trust.acceptTime(time('n2'), 'n1')).toMatchObject({ taken: false, why: 'refused' })
  })

  it('reports a cloud whose time lies before what it has signed: nothing that it grants would count here', () => {
    all()
    const time = (ms: number) => signDocument(DOCUMENT_KINDS.time, { aud: 'n', iat: iat(), exp: iat() + 60, timeMs: ms, timeEpoch: 0 }, freshness.signer)
    const ahead = 2 * HOUR
    for (const verdict of [{ why: 'refused' }, { taken: true }]) {
      world.sleep(61_000)
      expect(trust.accept(fresh({ timeMs: world.clock.wall() + ahead }))).toMatchObject(verdict)
    }
    world.sleep(61_000)
    expect(trust.acceptTime(time(world.clock.wall()), 'n')).toMatchObject({ why: 'refused', isDoubted: true, detail: expect.stringMatching(/its time lies 72\d\d s before what was signed earlier/) })
    expect(trust.acceptTime(time(world.clock.wall() + ahead), 'n')).toMatchObject({ taken: true })
    // Two that have overtaken each other.
    expect(trust.acceptTime(time(world.clock.wall() + ahead - 900), 'n')).toMatchObject({ taken: true })
  })

  it('knows no time that it could not write down', () => {
    all()
    world.sleep(HOUR)
    const before = clock.now()
    const undone = new Error('undone, as when the disk is full')
    const told = () => {
      clock.offer({ ms: before.nowMs - 60_000, epoch: 0, answersChallenge: true })
      throw undone
    }
    expect(() => ledger.commits.now(told)).toThrow(undone)
    expect(clock.now()).toEqual(before)
    world.setWall(before.nowMs + HOUR)
    world.reboot()
    reopen()
    expect(clock.now()).toEqual({ nowMs: before.nowMs + HOUR, trust: 'rtc' })
    expect(() => ledger.commits.now(told)).toThrow(undone)
    expect(clock.now()).toEqual({ nowMs: before.nowMs + HOUR, trust: 'rtc' })
  })

  describe('with a real-time clock years ahead', () => {
    const YEARS = 2 * 365 * 24 * HOUR
    const newKey = testKey('freshness', { seed: 42, iss: 'installation' })
    const next = (change: Partial<KeySetClaims> = {}) => keySet({ ver: 2, keys: [token, receipt, policyKey, newKey].map((k) => k.record), ...change })
    const time = (by: TestKey, ms = world.clock.wall()) => signDocument(DOCUMENT_KINDS.time, { aud: 'n', iat: iat(), exp: iat() + 60, timeMs: ms, timeEpoch: 0 }, by.signer)
    /** Signed while the wall clock was right; accepted once it is not. */
    const bootAhead = <T>(signed: () => T): T => {
      all()
      world.sleep(HOUR)
      const documents = signed()
      world.setWall(world.clock.wall() + YEARS)
      world.reboot()
      reopen()
      expect(clock.now().trust).toBe('rtc')
      return documents
    }

    it('checks the time with a newer key set that its clock speaks against, and takes that then', () => {
      const now = world.clock.wall() + HOUR
      const [keys, answer] = bootAhead(() => [next(), time(newKey)] as const)
      expect(trust.acceptTime(answer, 'n')).toMatchObject({ detail: expect.stringContaining('unknown_key') })
      expect(trust.accept(keys)).toMatchObject({ why: 'refused', detail: expect.stringContaining('expired') })
      expect(trust.acceptTime(answer, 'n')).toEqual({ taken: true, kind: 'time' })
      expect(clock.now()).toEqual({ nowMs: now, trust: 'signed' })
      expect(trust.accept(keys)).toEqual({ taken: true, kind: 'keys' })
    })

    it('believes those keys nothing else, and no time outside the life of their set', () => {
      const [keys, heads, before, after, other] = bootAhead(() => [next(), fresh({}, newKey), time(newKey, world.clock.wall() - 30_000), time(newKey, world.clock.wall() + 86_400_000), time(token)] as const)
      trust.accept(keys)
      const now = clock.now()
      expect(trust.accept(heads)).toMatchObject({ detail: expect.stringContaining('unknown_key') })
      for (const answer of [before, after, other]) expect(trust.acceptTime(answer, 'n')).toMatchObject({ taken: false, why: 'refused' })
      expect(clock.now()).toEqual(now)
    })

    it.each<[string, Partial<KeySetClaims>, TestKey]>([
      ['the root has not signed', {}, policyKey],
      ['is no newer than the one that is known', { ver: 1 }, root],
    ])('keeps no key set that %s', (_name, change, by) => {
      const [keys, answer] = bootAhead(() => [keySet({ ver: 2, keys: [newKey.record], ...change }, by), time(newKey)] as const)
      expect(trust.accept(keys)).toMatchObject({ why: 'refused' })
      expect(trust.acceptTime(answer, 'n')).toMatchObject({ taken: false, why: 'refused' })
    })

    it('keeps none while its own time rests on a signature', () => {
      all()
      const [keys, answer] = [next({ iat: iat() - 200, exp: iat() - 100 }), time(newKey, world.clock.wall() - 150_000)]
      expect(trust.accept(keys)).toMatchObject({ detail: expect.stringContaining('expired') })
      expect(trust.acceptTime(answer, 'n')).toMatchObject({ detail: expect.stringContaining('unknown_key') })
    })

    it('checks nothing with a key that it knows to be revoked, whatever a newer set says of it', () => {
      const stolen = { ...newKey.record, state: 'revoked' as const }
      const [keys, answer] = bootAhead(() => {
        trust.accept(keySet({ ver: 2, keys: [token, receipt, policyKey, freshness].map((k) => k.record).concat(stolen) }))
        return [next({ ver: 3 }), time(newKey)] as const
      })
      expect(trust.accept(keys)).toMatchObject({ detail: expect.stringContaining('expired') })
      expect(trust.acceptTime(answer, 'n')).toMatchObject({ taken: false, why: 'refused' })
    })
  })

  it('takes the deny list in order, page by page, and remembers it', () => {
    all()
    const until = iat() + 1_000
    expect(trust.accept(deny(5, 6, [{ kind: 'nonce', nonce: 'late', until }]))).toEqual({ taken: false, why: 'known' })
    expect(trust.accept(deny(0, 2, [{ kind: 'nonce', nonce: 'n1', until }, { kind: 'receipt', cti: 'c1', until }]))).toEqual({ taken: true, kind: 'deny' })
    expect(trust.accept(deny(2, 3, [{ kind: 'right', cti: 'c2', rightClass: 'exit', ordinals: [1], until }]))).toEqual({ taken: true, kind: 'deny' })
    reopen()
    expect(trust.have().deny).toEqual([0, 3])
    expect(ledger.claims.isDenied('n1')).toBe(true)
    expect(ledger.claims.isDenied('c1')).toBe(true)
    expect(ledger.claims.isFree('c2', 'exit', 1, world.clock.wall(), false)).toBe(false)
    expect(ledger.claims.isFree('c2', 'release', 1, world.clock.wall(), false)).toBe(true)
    expect(trust.accept(deny(0, 9, [], token))).toMatchObject({ why: 'refused' })
  })

  it('takes no offence at a freshness that a newer policy has overtaken, and does not take it', () => {
    all()
    world.sleep(1_000)
    const overtaken = fresh()
    world.sleep(500)
    expect(trust.accept(policy({ ver: 2 }))).toMatchObject({ taken: true })
    expect(trust.accept(overtaken)).toEqual({ taken: false, why: 'known' })
    world.sleep(6_000)
    expect(trust.accept(fresh())).toMatchObject({ why: 'refused', detail: expect.stringContaining('older than 0.2') })
  })

  // Names as in tuf-conformance: rollback, freeze, expiration, key rotation, mix and match.
  describe('against whoever has the broker, or a stolen key', () => {
    const records = (change: Record<string, Partial<TestKey['record']>> = {}) => [token, receipt, policyKey, freshness].map((k) => ({ ...k.record, ...change[k.record.kid] }))
    const heads = (keysVer: number, keysClaims: Partial<KeySetClaims>, policyVer: number) => ({
      keys: { epoch: 0, ver: keysVer, hash: contentHash(keySetClaims({ ver: keysVer, ...keysClaims })) },
      policy: { epoch: 0, ver: policyVer, hash: contentHash(policyClaims({ ver: policyVer })) },
    })

    it.each<[string, () => string, RegExp]>([
      ['rollback of the key set', () => keySet({ ver: 1 }), /older/],
      ['rollback of the policy', () => policy({ ver: 2 }), /older/],
      ['rollback of the freshness: it names an older key set', () => fresh({ ...heads(1, {}, 3) }), /names keys 0\.1, older/],
      ['rollback of the freshness: it names an older policy', () => fresh({ ...heads(2, {}, 2) }), /names policy 0\.2, older/],
      ['a version of the policy with other content', () => policy({ ver: 3, securityTagMode: 'station' }), /not the one that the freshness names|something else/],
      ['a version of the key set with other content', () => keySet({ ver: 2, keys: records().slice(1) }), /not the one that the freshness names|something else/],
      ['mix and match: another policy than the freshness names', () => policy({ ver: 4, securityTagMode: 'station' }), /not the one that the freshness names/],
      ['mix and match: the freshness names another content of what is here', () => fresh({ ...heads(2, {}, 3), keys: { epoch: 0, ver: 2, hash: 'x' } }), /another content of keys/],
      ['a stripped signature on the key set', () => keySet({ ver: 3 }).replace(/[^.]+$/, ''), /bad_signature|malformed/],
      ['a stripped signature and no algorithm', () => `${Buffer.from('{"alg":"none","typ":"keys+jwt"}').toString('base64url')}.${keySet({ ver: 3 }).split('.')[1]}.`, /not a document|header_not_allowed/],
      ['the key set of a new root with a higher epoch, before enrolment anew', () => keySet({ epoch: 1 }, testKey('root', { seed: 99 })), /unknown_key/],
      ['the wrong store', () => policy({ ver: 4, aud: 'st_2' }), /wrong_audience/],
      ['an expired key set', () => keySet({ ver: 3, iat: iat() - 200, exp: iat() - 100 }), /expired/],
      ['a key set that lives for ever', () => keySet({ ver: 3, exp: iat() + 500 * 86_400 }), /life_too_long/],
    ])('refuses and reports: %s', (_name, document, detail) => {
      all()
      trust.accept(keySet({ ver: 2 }))
      trust.accept(policy({ ver: 3 }))
      world.sleep(1_000)
      expect(trust.accept(fresh(heads(2, {}, 3)))).toMatchObject({ taken: true })
      if (_name.includes('another policy than')) {
        world.sleep(1_000)
        expect(trust.accept(fresh(heads(2, {}, 4)))).toMatchObject({ taken: true })
      }
      world.sleep(6_000)
      const before = { have: trust.have(), stage: trust.stage(), now: clock.now() }
      expect(trust.accept(document())).toMatchObject({ taken: false, why: 'refused', detail: expect.stringMatching(detail) })
      expect({ have: trust.have(), stage: trust.stage(), now: clock.now() }).toEqual(before)
    })

    it('freeze: the same documents over and over make it stale and then expired, expired documents that were accepted stay', () => {
      all()
      const frozen = [keySet(), fresh(), policy()]
      world.sleep(20 * 60_000)
      for (const document of frozen) trust.accept(document)
      expect(trust.stage()).toBe('stale')
      world.sleep(90 * HOUR)
      for (const document of frozen) trust.accept(document)
      expect(trust.stage()).toBe('expired')
      reopen()
      expect(trust.policy?.ver).toBe(1)
    })

    it('key rotation: what the next key signs is believed as soon as it is published, and the policy outlives the retirement of its key', () => {
      const next = testKey('policy', { seed: 7, iss: 'installation', state: 'next' })
      all()
      trust.accept(keySet({ ver: 2, keys: [...records(), next.record] }))
      expect(trust.accept(policy({ ver: 2 }, next))).toMatchObject({ taken: true })
      expect(trust.accept(keySet({ ver: 3, keys: [...records({ [policyKey.record.kid]: { state: 'retiring' } }), { ...next.record, state: 'active' }] }))).toMatchObject({ taken: true })
      expect(trust.accept(policy({ ver: 3 }))).toMatchObject({ taken: true })
      // The same policy, signed anew: its key may go.
      expect(trust.accept(policy({ ver: 3, iat: iat() + 1 }, next))).toEqual({ taken: false, why: 'known' })
      expect(trust.accept(keySet({ ver: 4, keys: [...records({ [policyKey.record.kid]: { state: 'revoked' } }), { ...next.record, state: 'active' }] }))).toMatchObject({ taken: true })
      expect(trust.policy?.ver).toBe(3)
      trust.accept(keySet({ ver: 5, keys: [...records({ [policyKey.record.kid]: { state: 'revoked' } }), { ...next.record, state: 'retired' }] }))
      reopen()
      expect(trust.policy?.ver).toBe(3)
      expect(trust.accept(policy({ ver: 4 }, next))).toMatchObject({ why: 'refused', detail: expect.stringContaining('key_revoked') })
    })

    it('fast forward: a policy of a stolen key is dropped with the key, and a new epoch is above its version', () => {
      const next = testKey('policy', { seed: 7, iss: 'installation' })
      all()
      expect(trust.accept(policy({ ver: Number.MAX_SAFE_INTEGER, securityTagMode: 'none' }))).toMatchObject({ taken: true })
      trust.accept(keySet({ ver: 2, keys: [...records({ [policyKey.record.kid]: { state: 'revoked' } }), next.record] }))
      expect(trust.policy).toBeUndefined()
      expect(trust.isBehind).toBe(true)
      reopen()
      expect(trust.policy).toBeUndefined()
      expect(trust.accept(policy({ ver: 2 }, next))).toMatchObject({ why: 'refused', detail: expect.stringContaining('older') })
      expect(trust.accept(policy({ epoch: 1, ver: 2 }, next))).toMatchObject({ taken: true })
      world.sleep(1_000)
      const named = { keys: { epoch: 0, ver: 2, hash: contentHash(keySetClaims({ ver: 2, keys: [...records({ [policyKey.record.kid]: { state: 'revoked' } }), next.record] })) } }
      expect(trust.accept(fresh({ ...named, policy: { epoch: 1, ver: 2, hash: contentHash(policyClaims({ epoch: 1, ver: 2 })) } }))).toMatchObject({ taken: true })
      expect(trust.stage()).toBe('fresh')
    })

    it('fast forward: what a stolen freshness key has numbered holds up no denial, no item and no freshness once it is revoked', () => {
      const next = testKey('freshness', { seed: 7, iss: 'installation' })
      const keysNow = { ver: 2, keys: [...records({ [freshness.record.kid]: { state: 'revoked' } }), next.record] }
      const until = iat() + 10_000
      const [last, generation] = [Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER]
      const itemsOf = (epoch: number, ver: number, by: TestKey, entries: ItemsClaims['entries']) =>
        signDocument(DOCUMENT_KINDS.items, { aud: 'st_1', iat: iat(), exp: iat() + 3_600, epoch, ver, after: 0, floor: 0, categories: [], entries }, by.signer)
      all()
      expect(trust.accept(deny(0, 2, [{ kind: 'nonce', nonce: 'n1', until }]))).toMatchObject({ taken: true })
      world.sleep(1_000)
      expect(trust.accept(fresh({ cloudGeneration: generation }))).toMatchObject({ taken: true })
      expect(trust.accept(deny(2, last, []))).toMatchObject({ taken: true })
      expect(trust.accept(itemsOf(last, last, freshness, [{ seq: 1, status: 'paid', epc: 'AB' }]))).toMatchObject({ taken: true })
      expect(trust.accept(deny(2, 3, [{ kind: 'receipt', cti: 'c1', until }]))).toEqual({ taken: false, why: 'known' })

      expect(trust.accept(keySet(keysNow))).toMatchObject({ taken: true })
      expect(trust.have()).toMatchObject({ deny: [0, 0], items: [0, 0] })
      expect(trust.takenBackSeq).toBe(0)
      expect(items.find('epc', 'AB')).toBeUndefined()
      reopen()
      expect(trust.have()).toMatchObject({ deny: [0, 0], items: [0, 0] })
      expect(trust.accept(deny(0, 3, [{ kind: 'nonce', nonce: 'n1', until }, { kind: 'receipt', cti: 'c1', until }], next))).toEqual({ taken: true, kind: 'deny' })
      expect([ledger.claims.isDenied('n1'), ledger.claims.isDenied('c1')]).toEqual([true, true])
      expect(trust.accept(itemsOf(0, 1, next, [{ seq: 1, status: 'sellable', epc: 'AB' }]))).toEqual({ taken: true, kind: 'items' })
      expect(items.find('epc', 'AB')?.status).toBe('sellable')
      world.sleep(1_000)
      const named = { keys: { epoch: 0, ver: 2, hash: contentHash(keySetClaims(keysNow)) } }
      expect(trust.accept(fresh(named, next))).toEqual({ taken: true, kind: 'fresh' })
      expect(trust.stage()).toBe('fresh')
      // Once: what counts again is not forgotten with every key set that still names the stolen key.
      expect(trust.accept(keySet({ ...keysNow, ver: 3 }))).toMatchObject({ taken: true })
      expect(trust.have()).toMatchObject({ deny: [0, 3], items: [0, 1] })
    })

    describe('fast forward: a time of a stolen freshness key, a year ahead', () => {
      const YEAR = 365 * 24 * HOUR
      const next = testKey('freshness', { seed: 8, iss: 'installation' })
      const revoked = (change: Partial<KeySetClaims> = {}) => ({ ver: 2, timeEpoch: iat(), keys: [...records({ [freshness.record.kid]: { state: 'revoked' } }), next.record], ...change })
      const time = (timeEpoch: number, by: TestKey = next) => signDocument(DOCUMENT_KINDS.time, { aud: 'n', iat: iat(), exp: iat() + 60, timeMs: world.clock.wall(), timeEpoch }, by.signer)
      const named = (claims: Partial<KeySetClaims>) => ({ keys: { epoch: 0, ver: 2, hash: contentHash(keySetClaims(claims)) }, timeEpoch: claims.timeEpoch ?? 0 })
      const poison = () => {
        all()
        for (let n = 0; n < 2; n++) {
          world.sleep(61_000)
          trust.accept(fresh({ timeMs: world.clock.wall() + YEAR }))
        }
        expect(clock.now()).toEqual({ nowMs: world.clock.wall() + YEAR, trust: 'signed' })
      }
      const claim = (source: 'token' | 'receipt', nonce: string, exp: number) => ledger.commits.now(() => ledger.claims.claim({ redemptionId: `${nonce}-${exp}`, source, nonce, rightClass: 'release', candidates: [0], all: false, exp, deviceId: 'd', nowMs: clock.now().nowMs }))

      it('is over with the key set that revokes the key, over a restart too: time, age of the policy, and what a wrong time had forgotten', () => {
        poison()
        // Whoever had a receipt is forgotten to have used it: it has long ended, by that time.
        claim('receipt', 'aa', iat() + 80_000)
        ledger.commits.now(() => ledger.claims.prune(Math.floor(clock.now().nowMs / 1_000) - 3_600))
        world.sleep(1_000)
        const keys = keySet(revoked())
        const epoch = iat()
        expect(trust.accept(keys)).toMatchObject({ why: 'refused', detail: expect.stringContaining('expired') })
        expect(trust.isTimeAwaited).toBe(true)
        expect(trust.acceptTime(time(epoch), 'n')).toEqual({ taken: true, kind: 'time' })
        expect(clock.now()).toEqual({ nowMs: world.clock.wall(), trust: 'signed' })
        expect(trust.accept(keys)).toEqual({ taken: true, kind: 'keys' })
        expect(trust.isTimeAwaited).toBe(false)
        expect(trust.stage()).toBe('expired')
        reopen()
        expect(trust.accept(fresh(named(revoked()), next))).toMatchObject({ taken: true })
        expect([trust.stage(), clock.now().nowMs, trust.lastContactMs]).toEqual(['fresh', world.clock.wall(), world.clock.wall()])
        expect(ledger.cloudGeneration.tokensSince).toBe(iat())
        expect(claim('receipt', 'aa', iat() + 80_000)).toMatchObject({ ok: false, reason: 'token_expired' })
        expect(claim('receipt', 'bb', iat() + 86_400)).toMatchObject({ ok: false })
        expect(claim('receipt', 'cc', iat() + 86_401)).toMatchObject({ ok: true })
        expect(claim('token', 'dd', iat() + 300)).toMatchObject({ ok: true })
      })

      it('moves no clock that it has not reached, and voids nothing there', () => {
        all()
        world.sleep(1_000)
        const claims = revoked()
        expect(trust.accept(keySet(claims))).toEqual({ taken: true, kind: 'keys' })
        expect(trust.isTimeAwaited).toBe(true)
        world.sleep(1_000)
        expect(trust.accept(fresh(named(claims), next))).toEqual({ taken: true, kind: 'fresh' })
        expect([clock.epoch, clock.now(), trust.isTimeAwaited, ledger.cloudGeneration.tokensSince]).toEqual([claims.timeEpoch, { nowMs: world.clock.wall(), trust: 'signed' }, false, 0])
        // Of before.
        expect(trust.acceptTime(time(0), 'n')).toEqual({ taken: true, kind: 'time' })
        expect(clock.epoch).toBe(claims.timeEpoch)
      })

      it('cannot be done once more in an epoch that the key opens itself', () => {
        all()
        world.sleep(1_000)
        expect(trust.accept(fresh({ timeEpoch: 7 }))).toMatchObject({ why: 'refused', detail: expect.stringContaining('which the root has not opened') })
        expect(trust.acceptTime(time(7, freshness), 'n')).toEqual({ taken: false, why: 'known' })
        expect(clock.epoch).toBe(0)
      })

      it('waits for the key set that is on its way, and does not lower the time for an old copy of a document', () => {
        poison()
        const claims = revoked()
        const [keys, heads, answer] = [keySet(claims), fresh(named(claims), freshness), time(claims.timeEpoch ?? 0)]
        expect(trust.accept(heads)).toEqual({ taken: false, why: 'known' })
        expect(trust.isBehind).toBe(true)
        expect(trust.acceptTime(answer, 'n')).toMatchObject({ why: 'refused' })
        trust.accept(keys)
        expect(clock.now().nowMs).toBe(world.clock.wall() + YEAR)
        expect(trust.acceptTime(answer, 'n')).toMatchObject({ taken: true })
      })

      it('keeps no key set out by naming another content for it', () => {
        all()
        world.sleep(1_000)
        expect(trust.accept(fresh({ keys: { epoch: 0, ver: 2, hash: 'none' } }))).toMatchObject({ taken: true })
        expect(trust.accept(keySet({ ver: 2, keys: records({}) }))).toMatchObject({ why: 'refused' })
        expect(trust.accept(keySet(revoked()))).toEqual({ taken: true, kind: 'keys' })
      })
    })

    it.each([true, false])('a stolen root: what it revoked, and the time it has signed, hold nothing up once the agent is enrolled anew under another; under the same root they count (%s)', (isSame) => {
      const next = isSame ? root : testKey('root', { seed: 99 })
      all()
      for (let n = 0; n < 2; n++) {
        world.sleep(61_000)
        trust.accept(fresh({ timeMs: world.clock.wall() + 300 * 24 * HOUR }))
      }
      const revokedAll = records(Object.fromEntries([token, receipt, policyKey, freshness].map(({ record }) => [record.kid, { state: 'revoked' as const }])))
      expect(trust.accept(keySet({ ver: 2, exp: iat() + 399 * 86_400, keys: revokedAll }))).toMatchObject({ taken: true })
      close()
      const anew = { ...identity, rootX: next.record.x }
      takeOver(join(folder, 'ledger.db'), identity, anew, [])
      open(undefined, anew)
      expect(trust.accept(keySet({ epoch: 1, ver: 3, exp: iat() + 399 * 86_400 }, next))).toMatchObject({ taken: true })
      expect([...trust.keys.values()].map(({ state }) => state === 'revoked')).toEqual([isSame, isSame, isSame, isSame])
      expect(trust.accept(fresh({ keys: { epoch: 1, ver: 3, hash: contentHash(keySetClaims({ epoch: 1, ver: 3 })) } }))).toMatchObject(isSame ? { why: 'refused' } : { taken: true })
      expect(clock.now().nowMs > world.clock.wall() + 299 * 24 * HOUR).toBe(isSame)
    })

    it('fast forward: items that a stolen key has numbered are forgotten after a start too, when the power went in between', () => {
      all()
      trust.accept(deny(0, 2, []))
      const stolen = { ver: 2, keys: records({ [freshness.record.kid]: { state: 'revoked' } }) }
      const begin = items.beginAnew
      let isCut = true
      items.beginAnew = () => {
        if (isCut) throw new Error('the power goes')
        begin()
      }
      expect(() => trust.accept(keySet(stolen))).toThrow('the power goes')
      isCut = false
      let begun = 0
      const opened = openTrust(identity, ledger, clock, { ...items, beginAnew: () => void begun++ })
      expect([opened.have().deny, begun]).toEqual([[0, 0], 1])
      openTrust(identity, ledger, clock, { ...items, beginAnew: () => void begun++ })
      expect(begun).toBe(1)
    })
  })
})
