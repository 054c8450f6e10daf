import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { adoptLedger } from '../../../edge-agent/enrolment/enrol.ts'
import { Trust } from '../../../edge-agent/trust/trust.ts'
import type { ItemsClaims } from '../../../policy/documents/item-documents.ts'
import { DOCUMENT_KINDS } from '../../../policy/documents/kinds.ts'
import { signDocument } from '../../../policy/documents/signed-document.ts'
import { contentHash, type KeySetClaims } from '../../../policy/documents/store-documents.ts'
import { testKey, type TestKey } from '../../support/keys.ts'
import {
  freshness,
  HOUR,
  identity,
  policyKey,
  receipt,
  records,
  root,
  token,
  trustBench,
} from '../../support/trust-bench.ts'

const t = trustBench()
const { open, close, reopen, iat, keySetClaims, keySet, policyClaims, policy, fresh, deny, all } = t

// The names of the attacks are those of tuf-conformance: rollback, freeze, expiration, key rotation, mix and match.
describe('an attacker with the broker or a stolen key', () => {
  const heads = (keysVer: number, keysClaims: Partial<KeySetClaims>, policyVer: number) => ({
    keys: { epoch: 0, ver: keysVer, hash: contentHash(keySetClaims({ ver: keysVer, ...keysClaims })) },
    policy: { epoch: 0, ver: policyVer, hash: contentHash(policyClaims({ ver: policyVer })) },
  })

  it.each<[string, () => string, RegExp]>([
    ['rollback of the key set', () => keySet({ ver: 1 }), /older/],
    ['rollback of the policy', () => policy({ ver: 2 }), /older/],
    [
      'rollback of the freshness: it names an older key set',
      () => fresh({ ...heads(1, {}, 3) }),
      /names keys 0\.1, older/,
    ],
    [
      'rollback of the freshness: it names an older policy',
      () => fresh({ ...heads(2, {}, 2) }),
      /names policy 0\.2, older/,
    ],
    [
      'a version of the policy with other content',
      () => policy({ ver: 3, securityTagMode: 'station' }),
      /not the version that the freshness names|different content/,
    ],
    [
      'a version of the key set with other content',
      () => keySet({ ver: 2, keys: records().slice(1) }),
      /not the version that the freshness names|different content/,
    ],
    [
      'mix and match: another policy than the freshness names',
      () => policy({ ver: 4, securityTagMode: 'station' }),
      /not the version that the freshness names/,
    ],
    [
      'mix and match: the freshness names different content of a held document',
      () => fresh({ ...heads(2, {}, 3), keys: { epoch: 0, ver: 2, hash: 'x' } }),
      /different content of keys/,
    ],
    ['a stripped signature on the key set', () => keySet({ ver: 3 }).replace(/[^.]+$/, ''), /bad_signature|malformed/],
    [
      'a stripped signature and no algorithm',
      () =>
        `${Buffer.from('{"alg":"none","typ":"keys+jwt"}').toString('base64url')}.${keySet({ ver: 3 }).split('.')[1]}.`,
      /not a document|header_not_allowed/,
    ],
    [
      'the key set of a new root with a higher epoch, before re-enrolment',
      () => keySet({ epoch: 1 }, testKey('root', { seed: 99 })),
      /unknown_key/,
    ],
    ['the wrong store', () => policy({ ver: 4, aud: 'st_2' }), /wrong_audience/],
    ['an expired key set', () => keySet({ ver: 3, iat: iat() - 200, exp: iat() - 100 }), /expired/],
    ['a key set that lives for ever', () => keySet({ ver: 3, exp: iat() + 500 * 86_400 }), /life_too_long/],
  ])('cannot get a document accepted: %s', (_name, document, detail) => {
    all()
    t.trust.accept(keySet({ ver: 2 }))
    t.trust.accept(policy({ ver: 3 }))
    t.world.sleep(1_000)
    expect(t.trust.accept(fresh(heads(2, {}, 3)))).toMatchObject({ taken: true })
    if (_name.includes('another policy than')) {
      t.world.sleep(1_000)
      expect(t.trust.accept(fresh(heads(2, {}, 4)))).toMatchObject({ taken: true })
    }
    t.world.sleep(6_000)
    const before = { have: t.trust.heldVersions(), stage: t.trust.stage(), now: t.clock.now() }
    expect(t.trust.accept(document())).toMatchObject({
      taken: false,
      why: 'refused',
      detail: expect.stringMatching(detail),
    })
    expect({ have: t.trust.heldVersions(), stage: t.trust.stage(), now: t.clock.now() }).toEqual(before)
  })

  describe('freeze: tokens of shoppers name newer documents', () => {
    const told = (policyVer: number, keysVer?: number) =>
      t.trust.noteIssuedVersions({ policy: policyVer, ...(keysVer !== undefined && { keys: keysVer }), issuedS: iat() })
    const state = () => [t.trust.isOutdated, t.trust.isBehind, t.trust.stage()]
    const [current, overtaken] = [
      [false, false, 'fresh'],
      [true, true, 'stale'],
    ]

    it.each<[string, () => void]>([
      ['a receipt that names a newer policy', () => told(2)],
      ['a token that names a newer policy', () => told(2, 1)],
      ['a token that names newer keys', () => told(1, 2)],
    ])('%s', (_name, tell) => {
      all()
      t.world.sleep(60_000)
      told(1, 1)
      expect(state()).toEqual(current)
      tell()
      expect(state()).toEqual(overtaken)
      // Replayed old documents do not change the state.
      for (const document of [keySet(), policy()]) t.trust.accept(document)
      expect(state()).toEqual(overtaken)
    })

    it('ends when the newer document arrives', () => {
      all()
      t.world.sleep(60_000)
      told(2, 2)
      t.trust.accept(keySet({ ver: 2 }))
      expect(state()).toEqual(overtaken)
      t.trust.accept(policy({ ver: 2 }))
      expect(state()).toEqual(current)
    })

    it('ends when a restored cloud names older versions', () => {
      all()
      t.world.sleep(60_000)
      told(9, 9)
      t.world.sleep(2_000)
      t.trust.accept(fresh())
      expect(state()).toEqual(current)
      told(1, 1)
      expect(state()).toEqual(current)
    })

    it('ends when the signing key of those tokens is revoked', () => {
      all()
      t.world.sleep(60_000)
      told(9, 9)
      t.trust.accept(keySet({ ver: 2, keys: records({ [token.record.kid]: { state: 'revoked' } }) }))
      expect(state()).toEqual(current)
    })

    it('ignores tokens with an issue time in the future or before the last cloud contact', () => {
      all()
      t.world.sleep(60_000)
      t.trust.noteIssuedVersions({ policy: 9, keys: 9, issuedS: iat() + 300 })
      t.trust.noteIssuedVersions({ policy: 9, keys: 9, issuedS: iat() - 300 })
      expect(state()).toEqual(current)
    })
  })

  it('freeze: replayed documents make the policy stale, then expired; accepted documents stay', () => {
    all()
    const frozen = [keySet(), fresh(), policy()]
    t.world.sleep(20 * 60_000)
    for (const document of frozen) t.trust.accept(document)
    expect(t.trust.stage()).toBe('stale')
    t.world.sleep(90 * HOUR)
    for (const document of frozen) t.trust.accept(document)
    expect(t.trust.stage()).toBe('expired')
    reopen()
    expect(t.trust.policy?.ver).toBe(1)
  })

  describe('freeze: denials that the freshness names are withheld', () => {
    const named = (ver: number) => t.trust.accept(fresh({ deny: { epoch: 0, ver } }))
    const state = () => [t.trust.isOutdated, t.trust.stage(), t.trust.missingDenials?.replace(/ are missing .*$/, '')]
    const current = [false, 'fresh', undefined]
    /** Accepts a freshness every five seconds, and none of the documents that it names. */
    const freeze = (seconds: number, ver: number) => {
      for (let s = 0; s < seconds; s += 5) {
        t.world.sleep(5_000)
        expect(named(ver)).toMatchObject({ taken: true })
      }
    }

    it('make the policy stale after one minute, until they arrive', () => {
      all()
      freeze(65, 0)
      freeze(60, 2)
      expect(state()).toEqual(current)
      freeze(10, 2)
      expect(state()).toEqual([true, 'stale', 'denials 1 to 2'])
      // A page without new entries does not change the state.
      t.trust.accept(deny(0, 0, []))
      expect(state()).toEqual([true, 'stale', 'denials 1 to 2'])
      t.trust.accept(deny(0, 2, []))
      expect(state()).toEqual(current)
    })

    it('do not make the policy stale while pages of a long list arrive', () => {
      all()
      for (let page = 0; page < 5; page++) {
        freeze(40, 5)
        expect(state()).toEqual(current)
        t.trust.accept(deny(page, page + 1, []))
      }
      freeze(90, 5)
      expect(state()).toEqual(current)
    })

    it('do not make the policy stale after the key that named them is revoked', () => {
      all()
      freeze(90, Number.MAX_SAFE_INTEGER)
      expect(t.trust.stage()).toBe('stale')
      t.trust.accept(keySet({ ver: 2, keys: records({ [freshness.record.kid]: { state: 'revoked' } }) }))
      expect(state()).toEqual(current)
    })
  })

  it('freeze: without new key sets nothing stays fresh beyond the end of the last one', () => {
    const heads = { keys: { epoch: 0, ver: 1, hash: contentHash(keySetClaims()) } }
    const exp = iat() + 600
    t.trust.accept(keySet({ exp }))
    t.trust.accept(policy())
    for (let minute = 0; minute < 9; minute++) {
      t.world.sleep(60_000)
      expect(t.trust.accept(fresh(heads))).toMatchObject({ taken: true })
    }
    expect(t.trust.stage()).toBe('fresh')
    t.world.sleep(60_000)
    expect(t.trust.accept(fresh(heads))).toMatchObject({ taken: true })
    expect(t.trust.stage()).toBe('expired')
    reopen()
    expect(t.trust.stage()).toBe('expired')
    expect(t.trust.accept(keySet({ ver: 2 }))).toMatchObject({ taken: true })
    expect(t.trust.stage()).toBe('fresh')
  })

  it('key rotation: accepts documents of the next key once it is published, and keeps the policy after its key retired', () => {
    const next = testKey('policy', { seed: 7, iss: 'installation', state: 'next' })
    all()
    t.trust.accept(keySet({ ver: 2, keys: [...records(), next.record] }))
    expect(t.trust.accept(policy({ ver: 2 }, next))).toMatchObject({ taken: true })
    expect(
      t.trust.accept(
        keySet({
          ver: 3,
          keys: [...records({ [policyKey.record.kid]: { state: 'retiring' } }), { ...next.record, state: 'active' }],
        }),
      ),
    ).toMatchObject({ taken: true })
    expect(t.trust.accept(policy({ ver: 3 }))).toMatchObject({ taken: true })
    // The same policy, signed with the next key, so that the former key may retire.
    expect(t.trust.accept(policy({ ver: 3, iat: iat() + 1 }, next))).toEqual({ taken: false, why: 'known' })
    expect(
      t.trust.accept(
        keySet({
          ver: 4,
          keys: [...records({ [policyKey.record.kid]: { state: 'revoked' } }), { ...next.record, state: 'active' }],
        }),
      ),
    ).toMatchObject({ taken: true })
    expect(t.trust.policy?.ver).toBe(3)
    t.trust.accept(
      keySet({
        ver: 5,
        keys: [...records({ [policyKey.record.kid]: { state: 'revoked' } }), { ...next.record, state: 'retired' }],
      }),
    )
    reopen()
    expect(t.trust.policy?.ver).toBe(3)
    expect(t.trust.accept(policy({ ver: 4 }, next))).toMatchObject({
      why: 'refused',
      detail: expect.stringContaining('key_revoked'),
    })
  })

  it.each([
    { epoch: 0, ver: Number.MAX_SAFE_INTEGER },
    { epoch: 2, ver: 1 },
    { epoch: Number.MAX_SAFE_INTEGER, ver: Number.MAX_SAFE_INTEGER },
  ])('fast forward: discards the policy of a stolen key and its version when the key is revoked', (forged) => {
    const next = testKey('policy', { seed: 7, iss: 'installation' })
    all()
    expect(t.trust.accept(policy({ ...forged, securityTagMode: 'none' }))).toMatchObject({ taken: true })
    expect(t.trust.accept(policy({ epoch: 0, ver: 2 }))).toMatchObject({
      why: 'refused',
      detail: expect.stringContaining('older'),
    })
    t.trust.accept(
      keySet({ ver: 2, keys: [...records({ [policyKey.record.kid]: { state: 'revoked' } }), next.record] }),
    )
    expect(t.trust.policy).toBeUndefined()
    expect(t.trust.isBehind).toBe(true)
    expect(t.trust.heldVersions().policy).toBeUndefined()
    reopen()
    expect([t.trust.policy, t.trust.heldVersions().policy]).toEqual([undefined, undefined])
    expect(t.trust.accept(policy({ ...forged, securityTagMode: 'none' }))).toMatchObject({
      why: 'refused',
      detail: expect.stringContaining('key_revoked'),
    })
    expect(t.trust.accept(policy({ epoch: 1, ver: 2 }, next))).toMatchObject({ taken: true })
    expect(t.trust.accept(policy({ epoch: 1, ver: 1 }, next))).toMatchObject({
      why: 'refused',
      detail: expect.stringContaining('older'),
    })
    reopen()
    expect(t.trust.heldVersions().policy).toEqual([1, 2])
    t.world.sleep(1_000)
    const named = {
      keys: {
        epoch: 0,
        ver: 2,
        hash: contentHash(
          keySetClaims({ ver: 2, keys: [...records({ [policyKey.record.kid]: { state: 'revoked' } }), next.record] }),
        ),
      },
    }
    expect(
      t.trust.accept(
        fresh({ ...named, policy: { epoch: 1, ver: 2, hash: contentHash(policyClaims({ epoch: 1, ver: 2 })) } }),
      ),
    ).toMatchObject({ taken: true })
    expect(t.trust.stage()).toBe('fresh')
  })

  it('fast forward: numbers of a stolen freshness key block no denial, item or freshness after its revocation', () => {
    const next = testKey('freshness', { seed: 7, iss: 'installation' })
    const keysNow = { ver: 2, keys: [...records({ [freshness.record.kid]: { state: 'revoked' } }), next.record] }
    const until = iat() + 10_000
    const [last, generation] = [Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER]
    const itemsOf = (epoch: number, ver: number, by: TestKey, entries: ItemsClaims['entries']) =>
      signDocument(
        DOCUMENT_KINDS.items,
        {
          aud: 'st_1',
          iat: iat(),
          exp: iat() + 3_600,
          epoch,
          ver,
          after: 0,
          floor: 0,
          categories: [],
          brands: [],
          entries,
        },
        by.signer,
      )
    all()
    expect(t.trust.accept(deny(0, 2, [{ kind: 'nonce', nonce: 'n1', until }]))).toMatchObject({ taken: true })
    t.world.sleep(1_000)
    expect(t.trust.accept(fresh({ cloudGeneration: generation }))).toMatchObject({ taken: true })
    expect(t.trust.accept(deny(2, last, []))).toMatchObject({ taken: true })
    expect(t.trust.accept(itemsOf(last, last, freshness, [{ seq: 1, status: 'paid', epc: 'AB' }]))).toMatchObject({
      taken: true,
    })
    expect(t.trust.accept(deny(2, 3, [{ kind: 'receipt', cti: 'c1', until }]))).toEqual({ taken: false, why: 'known' })

    expect(t.trust.accept(keySet(keysNow))).toMatchObject({ taken: true })
    expect(t.trust.heldVersions()).toMatchObject({ deny: [0, 0], items: [0, 0] })
    expect(t.trust.lastRevocationSeq).toBe(0)
    expect(t.items.find('epc', 'AB')).toBeUndefined()
    reopen()
    expect(t.trust.heldVersions()).toMatchObject({ deny: [0, 0], items: [0, 0] })
    expect(
      t.trust.accept(
        deny(
          0,
          3,
          [
            { kind: 'nonce', nonce: 'n1', until },
            { kind: 'receipt', cti: 'c1', until },
          ],
          next,
        ),
      ),
    ).toEqual({ taken: true, kind: 'deny' })
    expect([t.ledger.claims.isDenied('n1'), t.ledger.claims.isDenied('c1')]).toEqual([true, true])
    expect(t.trust.accept(itemsOf(0, 1, next, [{ seq: 1, status: 'sellable', epc: 'AB' }]))).toEqual({
      taken: true,
      kind: 'items',
    })
    expect(t.items.find('epc', 'AB')?.status).toBe('sellable')
    t.world.sleep(1_000)
    const named = { keys: { epoch: 0, ver: 2, hash: contentHash(keySetClaims(keysNow)) } }
    expect(t.trust.accept(fresh(named, next))).toEqual({ taken: true, kind: 'fresh' })
    expect(t.trust.stage()).toBe('fresh')
    // A later key set with the same revoked key does not reset the new state.
    expect(t.trust.accept(keySet({ ...keysNow, ver: 3 }))).toMatchObject({ taken: true })
    expect(t.trust.heldVersions()).toMatchObject({ deny: [0, 3], items: [0, 1] })
  })

  it.each([true, false])(
    'a stolen root: its revocations and time end with re-enrolment under a new root, and stay under the same root (same: %s)',
    (isSame) => {
      const next = isSame ? root : testKey('root', { seed: 99 })
      all()
      for (let n = 0; n < 2; n++) {
        t.world.sleep(61_000)
        t.trust.accept(fresh({ timeMs: t.world.clock.wall() + 300 * 24 * HOUR }))
      }
      const revokedAll = records(
        Object.fromEntries(
          [token, receipt, policyKey, freshness].map(({ record }) => [record.kid, { state: 'revoked' as const }]),
        ),
      )
      expect(t.trust.accept(keySet({ ver: 2, exp: iat() + 399 * 86_400, keys: revokedAll }))).toMatchObject({
        taken: true,
      })
      close()
      const anew = { ...identity, rootX: next.record.x }
      adoptLedger(join(t.folder, 'ledger.db'), identity, anew)
      open(undefined, anew)
      expect(t.trust.accept(keySet({ epoch: 1, ver: 3, exp: iat() + 399 * 86_400 }, next))).toMatchObject({
        taken: true,
      })
      expect([...t.trust.keys.values()].map(({ state }) => state === 'revoked')).toEqual([
        isSame,
        isSame,
        isSame,
        isSame,
      ])
      expect(
        t.trust.accept(fresh({ keys: { epoch: 1, ver: 3, hash: contentHash(keySetClaims({ epoch: 1, ver: 3 })) } })),
      ).toMatchObject(isSame ? { why: 'refused' } : { taken: true })
      expect(t.clock.now().nowMs > t.world.clock.wall() + 299 * 24 * HOUR).toBe(isSame)
    },
  )

  it('fast forward: discards items of a stolen key at the next start, if the power failed during the revocation', () => {
    all()
    t.trust.accept(deny(0, 2, []))
    const stolen = { ver: 2, keys: records({ [freshness.record.kid]: { state: 'revoked' } }) }
    const begin = t.items.reset.bind(t.items)
    let isCut = true
    t.items.reset = () => {
      if (isCut) throw new Error('the power goes')
      begin()
    }
    expect(() => t.trust.accept(keySet(stolen))).toThrow('the power goes')
    isCut = false
    let begun = 0
    t.items.reset = () => void begun++
    const opened = new Trust(identity, t.ledger, t.clock, t.items)
    expect([opened.heldVersions().deny, begun]).toEqual([[0, 0], 1])
    void new Trust(identity, t.ledger, t.clock, t.items)
    expect(begun).toBe(1)
  })
})
