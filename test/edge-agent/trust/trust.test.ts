import type { Statement } from 'better-sqlite3'
import { expect, it } from 'vitest'
import { LedgerFull } from '../../../edge-agent/ledger/file/commit.ts'
import { openLedgerFile } from '../../../edge-agent/ledger/file/ledger-file.ts'
import type { OpenLedgerFile } from '../../../edge-agent/ledger/ledger.ts'
import { DOCUMENT_KINDS } from '../../../policy/documents/kinds.ts'
import { signDocument } from '../../../policy/documents/signed-document.ts'
import type { PolicyClaims } from '../../../policy/documents/store-documents.ts'
import { freshness, HOUR, policyKey, receipt, root, token, trustBench } from '../../support/trust-bench.ts'

/** Returns a connection whose COMMIT fails with a full disk when `hasRoom` returns false. */
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

const t = trustBench()
const { open, close, reopen, iat, keySet, policy, policyClaims, fresh, deny, all } = t

it('accepts the key set of the root, then time, then policy, and keeps them after a restart', () => {
  expect(all()).toEqual([
    { taken: true, kind: 'keys' },
    { taken: true, kind: 'fresh' },
    { taken: true, kind: 'policy' },
  ])
  expect(t.trust.stage()).toBe('fresh')
  reopen()
  expect(t.trust.policy?.ver).toBe(1)
  expect(t.trust.keys.size).toBe(4)
  expect(t.trust.stage()).toBe('fresh')
  expect(t.trust.heldVersions()).toEqual({ keys: [0, 1], policy: [0, 1], deny: [0, 0], items: [0, 0] })
})

it.each<[string, () => string]>([
  ['keys signed by anything but the root', () => keySet({ ver: 2 }, policyKey)],
  ['keys of another account', () => keySet({ ver: 2, aud: 'acc_2.test' })],
  ['a policy signed by the root', () => policy({ ver: 2 }, root)],
  ['a policy signed by the freshness key', () => policy({ ver: 2 }, freshness)],
  ['a policy of another store', () => policy({ ver: 2, aud: 'st_2' })],
  ['a policy without signature', () => `${policy({ ver: 2 }).split('.').slice(0, 2).join('.')}.`],
  [
    'a policy with a claim more',
    () =>
      signDocument(DOCUMENT_KINDS.policy, { ...policyClaims({ ver: 2 }), extra: 1 } as PolicyClaims, policyKey.signer),
  ],
  ['a policy that has expired', () => policy({ ver: 2, iat: iat() - 81 * 3_600, exp: iat() - 3_600 })],
  ['a policy from the future', () => policy({ ver: 2, iat: iat() + 60, exp: iat() + 3_600 })],
  ['a freshness of another store', () => fresh({ aud: 'st_2' })],
  ['a freshness signed by the token key', () => fresh({}, token)],
  [
    'a token',
    () => signDocument(DOCUMENT_KINDS.authorization, { aud: 'st_1', iat: iat(), exp: iat() + 60 }, token.signer),
  ],
  ['nonsense', () => 'nonsense'],
  ['a flood', () => 'x'.repeat(300_000)],
])('rejects %s', (_name, document) => {
  all()
  expect(t.trust.accept(document())).toMatchObject({ taken: false, why: 'refused' })
  expect(t.trust.policy?.ver).toBe(1)
})

it('rejects an older version, and the same version with different content, also after a restart', () => {
  all()
  expect(t.trust.accept(policy({ ver: 3 }))).toEqual({ taken: true, kind: 'policy' })
  expect(t.trust.accept(keySet({ ver: 2 }))).toEqual({ taken: true, kind: 'keys' })
  for (const again of [() => undefined, reopen]) {
    again()
    expect(t.trust.accept(policy({ ver: 2 }))).toMatchObject({
      why: 'refused',
      detail: expect.stringContaining('older'),
    })
    expect(t.trust.accept(policy({ ver: 3, securityTagMode: 'station' }))).toMatchObject({
      why: 'refused',
      detail: expect.stringContaining('different content'),
    })
    expect(t.trust.accept(keySet({ ver: 1 }))).toMatchObject({ why: 'refused' })
    expect(t.trust.accept(policy({ ver: 3, iat: iat() + 1 }))).toEqual({ taken: false, why: 'known' })
  }
  expect(t.trust.accept(policy({ epoch: 1, ver: 1 }))).toEqual({ taken: true, kind: 'policy' })
})

it('rejects documents of a revoked key', () => {
  all()
  const revoked = { ...policyKey.record, state: 'revoked' as const }
  expect(
    t.trust.accept(keySet({ ver: 2, keys: [token.record, receipt.record, revoked, freshness.record] })),
  ).toMatchObject({ taken: true })
  expect(t.trust.accept(policy({ ver: 2 }))).toMatchObject({
    why: 'refused',
    detail: expect.stringContaining('key_revoked'),
  })
})

it('rejects a stolen key although a full disk prevented storing its revocation', () => {
  // Number of commits that succeed before the disk is full.
  let room = Number.POSITIVE_INFINITY
  close()
  open((file) => fullAfter(openLedgerFile(file), () => room-- > 0))
  all()
  const revokedToken = { ...token.record, state: 'revoked' as const }
  const revocation = keySet({ ver: 2, keys: [revokedToken, receipt.record, policyKey.record, freshness.record] })
  for (room = 0; t.trust.keys.get(token.record.kid)?.state !== 'revoked' && room < 5; room++) {
    const granted = room
    try {
      t.trust.accept(revocation)
    } catch (error) {
      expect(error).toBeInstanceOf(LedgerFull)
    }
    room = granted
  }
  room = Number.POSITIVE_INFINITY
  t.trust.accept(revocation)
  expect(t.trust.keys.get(token.record.kid)?.state).toBe('revoked')
  // A key set of a restored cloud does not make the key valid again.
  for (const again of [() => undefined, reopen]) {
    again()
    t.trust.accept(keySet({ epoch: 5 }))
    expect(t.trust.keys.get(token.record.kid)?.state).toBe('revoked')
    expect(t.trust.revocationReminders).toEqual([revocation])
  }
})

it('ages the policy without the cloud, and only a freshness that names this policy renews it', () => {
  all()
  t.world.sleep(16 * 60_000)
  expect(t.trust.stage()).toBe('stale')
  t.trust.accept(fresh({ policy: { epoch: 0, ver: 2, hash: 'another' } }))
  expect(t.trust.stage()).toBe('stale')
  expect(t.trust.isBehind).toBe(true)
  t.world.sleep(1_000)
  t.trust.accept(fresh())
  expect(t.trust.stage()).toBe('fresh')
  t.world.sleep(81 * HOUR)
  expect(t.trust.stage()).toBe('expired')
})

it('does not renew the policy by a replayed freshness', () => {
  all()
  const old = fresh()
  t.world.sleep(20 * 60_000)
  expect(t.trust.accept(old)).toEqual({ taken: false, why: 'known' })
  expect(t.trust.stage()).toBe('stale')
  reopen()
  t.trust.accept(old)
  expect(t.trust.stage()).toBe('stale')
})

it('applies the deny list in order, page by page, and keeps it after a restart', () => {
  all()
  const until = iat() + 1_000
  expect(t.trust.accept(deny(5, 6, [{ kind: 'nonce', nonce: 'late', until }]))).toEqual({ taken: false, why: 'known' })
  expect(
    t.trust.accept(
      deny(0, 2, [
        { kind: 'nonce', nonce: 'n1', until },
        { kind: 'receipt', cti: 'c1', until },
      ]),
    ),
  ).toEqual({ taken: true, kind: 'deny' })
  expect(t.trust.accept(deny(2, 3, [{ kind: 'right', cti: 'c2', rightClass: 'exit', ordinals: [1], until }]))).toEqual({
    taken: true,
    kind: 'deny',
  })
  reopen()
  expect(t.trust.heldVersions().deny).toEqual([0, 3])
  expect(t.ledger.claims.isDenied('n1')).toBe(true)
  expect(t.ledger.claims.isDenied('c1')).toBe(true)
  expect(t.ledger.claims.isFree('c2', 'exit', 1, t.world.clock.wall(), false)).toBe(false)
  expect(t.ledger.claims.isFree('c2', 'release', 1, t.world.clock.wall(), false)).toBe(true)
  expect(t.trust.accept(deny(0, 9, [], token))).toMatchObject({ why: 'refused' })
})

it.each([
  ['policy', () => policy({ ver: 2 })],
  ['key set', () => keySet({ ver: 2 })],
])('ignores a freshness from before the held %s, without reporting it', (_name, newer) => {
  all()
  t.world.sleep(1_000)
  const overtaken = fresh()
  t.world.sleep(500)
  expect(t.trust.accept(newer())).toMatchObject({ taken: true })
  expect(t.trust.accept(overtaken)).toEqual({ taken: false, why: 'known' })
  t.world.sleep(6_000)
  expect(t.trust.accept(fresh())).toMatchObject({ why: 'refused', detail: expect.stringContaining('older than 0.2') })
})
