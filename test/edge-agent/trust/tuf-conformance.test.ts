import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { openLedger, type Ledger } from '../../../edge-agent/ledger/ledger.ts'
import { enrol } from '../../../edge-agent/enrolment/enrol.ts'
import { openAgentClock, type AgentClock } from '../../../edge-agent/trust/time/clock.ts'
import type { Identity } from '../../../edge-agent/identity/identity.ts'
import { Trust } from '../../../edge-agent/trust/trust.ts'
import { crockford } from '../../../policy/base32.ts'
import { publicJwk, thumbprint } from '../../../policy/documents/keys.ts'
import { DOCUMENT_KINDS, type DocumentKindName } from '../../../policy/documents/kinds.ts'
import { signDocument } from '../../../policy/documents/signed-document.ts'
import {
  contentHash,
  type FreshClaims,
  type KeySetClaims,
  type PolicyClaims,
} from '../../../policy/documents/store-documents.ts'
import { DEFAULT_POLICY } from '../../../policy/store-policy.ts'
import { virtualPlatform, type VirtualPlatform } from '../../verification/simulation/virtual/virtual-platform.ts'
import { temporaryFolder } from '../../support/databases.ts'
import { testKey, type TestKey } from '../../support/keys.ts'

/**
 * The cases of theupdateframework/tuf-conformance (eec841c), each with what it is here: our key set is TUF's root
 * and its list of roles' keys, our freshness is timestamp and snapshot in one, policy, denials and items are
 * targets. One root key and one signature a document: thresholds above one do not exist.
 */
type Ours =
  /** A test with this title, in another file of this folder, covers the case. */
  | { test: string }
  | { here: string; run(): void | Promise<void> }
  /** The case has no meaning in untag. */
  | { not: string }

const HOUR = 3_600_000
const HEADERS_ONLY = 'the header names one of our own keys, and nothing else is read from it'

describe('tuf-conformance', () => {
  let folder: string
  let world: VirtualPlatform
  let ledger: Ledger
  let clock: AgentClock
  let trust: Trust
  const root = testKey('root')
  const [token, policyKey, freshness] = [
    testKey('token'),
    testKey('policy', { iss: 'installation' }),
    testKey('freshness', { iss: 'installation' }),
  ]
  const stranger = testKey('policy', { seed: 77, iss: 'installation' })
  const identity: Identity = {
    agentId: 'agt_1',
    storeId: 'st_1',
    tenant: 'acc_1.test',
    ledgerId: 'led_1',
    generation: 1,
    cloud: 'https://x',
    mqttUrl: 'mqtt://x',
    rootX: root.record.x,
    x: root.record.x,
    secret: '',
  }

  beforeEach(() => {
    folder = temporaryFolder('tuf')
    world = virtualPlatform({ startMs: Date.UTC(2026, 10, 20, 9) })
    ledger = openLedger({
      file: join(folder, 'ledger.db'),
      ledgerId: 'led_1',
      generation: 1,
      onFailure: (failure) => {
        throw failure
      },
    })
    clock = openAgentClock(ledger, world.clock)
    trust = new Trust(identity, ledger, clock)
  })
  afterEach(() => {
    ledger.close()
    rmSync(folder, { recursive: true, force: true })
  })

  const iat = () => Math.floor(world.clock.wall() / 1_000)
  const times = (seconds: number) => ({ iat: iat(), exp: iat() + seconds })
  const keySetClaims = (change: Partial<KeySetClaims> = {}): KeySetClaims => ({
    aud: 'acc_1.test',
    ...times(30 * 86_400),
    epoch: 0,
    ver: 1,
    keys: [token, policyKey, freshness].map((k) => k.record),
    ...change,
  })
  const policyClaims = (change: Partial<PolicyClaims> = {}): PolicyClaims => ({
    storeName: 'Hafencity',
    iss: 'acc_1.test',
    aud: 'st_1',
    ...times(80 * 3_600),
    epoch: 0,
    ver: 1,
    securityTagMode: 'rfid',
    policy: DEFAULT_POLICY,
    devices: [],
    operators: [],
    ...change,
  })
  const head = (claims: KeySetClaims | PolicyClaims) => ({
    epoch: claims.epoch,
    ver: claims.ver,
    hash: contentHash(claims),
  })
  const freshClaims = (keys: KeySetClaims, policy: PolicyClaims, change: Partial<FreshClaims> = {}): FreshClaims => ({
    aud: 'st_1',
    ...times(80 * 3_600),
    timeMs: world.clock.wall(),
    timeEpoch: 0,
    cloudGeneration: 1,
    keys: head(keys),
    policy: head(policy),
    deny: { epoch: 0, ver: 0 },
    items: { epoch: 0, ver: 0, floor: 0 },
    ...change,
  })
  const sign = (kind: DocumentKindName, claims: { aud: string; iat: number; exp: number }, by: TestKey) =>
    signDocument(DOCUMENT_KINDS[kind], claims, by.signer)
  /** A good state of everything, version 1. */
  const begin = () => {
    expect(trust.accept(sign('keys', keySetClaims(), root))).toMatchObject({ taken: true })
    expect(trust.accept(sign('fresh', freshClaims(keySetClaims(), policyClaims()), freshness))).toMatchObject({
      taken: true,
    })
    expect(trust.accept(sign('policy', policyClaims(), policyKey))).toMatchObject({ taken: true })
    world.sleep(1_000)
  }
  /** The state of trust. A refusal must not change it. */
  const state = () => ({ have: trust.heldVersions(), stage: trust.stage(), behind: trust.isBehind, now: clock.now() })
  const refused = (document: string, detail: RegExp) => {
    const before = state()
    expect(trust.accept(document)).toMatchObject({
      taken: false,
      why: 'refused',
      detail: expect.stringMatching(detail),
    })
    expect(state()).toEqual(before)
  }
  const enrolAt = (rootX: string, documents: string[]) => {
    // 12 characters of chance, then 10 bytes of the root's thumbprint.
    const code = 'K7QX4M2P9TRW' + crockford.encode(thumbprint(root.record.x).subarray(0, 10))
    const answer = { agentId: 'agt_1', storeId: 'st_1', root: publicJwk(rootX), documents, mqtt: { url: 'mqtt://x' } }
    return enrol({
      cloud: 'https://x/api/v1',
      code,
      platform: world,
      fetch: () => Promise.resolve({ status: 200, text: () => Promise.resolve(JSON.stringify(answer)) }),
    })
  }

  const THRESHOLD = 'one root key, one signature a document: there is no threshold to be missed'
  const DELEGATION = 'there are no delegations and no targets files'
  const MISSING = {
    test: 'ages the policy without the cloud, and only a freshness that names this policy renews it',
  }

  const CASES: Record<string, Ours> = {
    // test_basic.py
    test_basic_refresh_requests: {
      test: 'accepts the key set of the root, then time, then policy, and keeps them after a restart',
    },
    test_basic_refresh_trusted_data: {
      test: 'accepts the key set of the root, then time, then policy, and keeps them after a restart',
    },
    test_implicit_refresh: { not: 'documents are pushed and pulled all the time; nothing is downloaded by their word' },
    test_invalid_initial_root: {
      here: 'enrolment ends at a root that is not the one in the code',
      run: async () =>
        expect(await enrolAt(stranger.record.x, [sign('keys', keySetClaims(), stranger)])).toMatchObject({
          ok: false,
          why: expect.stringContaining('did not create this code'),
        }),
    },
    test_unsigned_initial_root: {
      here: 'enrolment ends at a key set that its root has not signed',
      async run() {
        expect(await enrolAt(root.record.x, [sign('keys', keySetClaims(), stranger)])).toMatchObject({
          ok: false,
          why: expect.stringContaining('not signed by its root'),
        })
        expect(await enrolAt(root.record.x, [sign('keys', keySetClaims(), root)])).toMatchObject({ ok: true })
      },
    },
    test_unsigned_metadata: {
      here: 'each kind, correct but signed by a key that is in no set, or by that of another role',
      run() {
        begin()
        const [keys, policy] = [keySetClaims({ ver: 2 }), policyClaims({ ver: 2 })]
        const deny = { aud: 'st_1', ...times(3_600), epoch: 0, after: 0, ver: 1, entries: [] }
        for (const by of [stranger, token]) {
          refused(sign('keys', keys, by), /unknown_key|wrong_kind/)
          refused(sign('fresh', freshClaims(keys, policy), by), /unknown_key|wrong_kind/)
          refused(sign('policy', policy, by), /unknown_key|wrong_kind/)
          refused(sign('deny', deny, by), /unknown_key|wrong_kind/)
        }
      },
    },
    test_url_and_metadata_version_mismatch: { test: 'mix and match: another policy than the freshness names' },
    test_timestamp_content_changes: {
      here: 'a second freshness of the same moment changes nothing',
      run() {
        begin()
        const policy = policyClaims()
        expect(trust.accept(sign('fresh', freshClaims(keySetClaims(), policy), freshness))).toMatchObject({
          taken: true,
        })
        const before = state()
        expect(
          trust.accept(
            sign(
              'fresh',
              freshClaims(keySetClaims(), policy, { policy: { epoch: 0, ver: 100, hash: 'x' } }),
              freshness,
            ),
          ),
        ).toEqual({ taken: false, why: 'known' })
        expect(state()).toEqual(before)
      },
    },
    test_basic_metadata_hash_support: {
      test: 'accepts the key set of the root, then time, then policy, and keeps them after a restart',
    },
    test_targets_hash_mismatch: { test: 'a version of the policy with other content' },
    test_snapshot_hash_mismatch: { test: 'mix and match: the freshness names different content of a held document' },
    test_metadata_bytes_match: {
      here: 'what is kept is what came, to the byte',
      run() {
        begin()
        const document = sign('policy', policyClaims({ ver: 2 }), policyKey)
        trust.accept(document)
        expect(ledger.metadata.document('policy')?.jws).toBe(document)
      },
    },
    test_custom_fields: { test: 'a policy with a claim more' },
    test_deprecated_keyid_hash_algorithms: { not: HEADERS_ONLY },
    test_snapshot_404: MISSING,
    test_targets_404: MISSING,
    test_timestamp_404: MISSING,
    test_incorrect_metadata_type: {
      here: 'claims of one kind under the name of another, signed by the key of that other',
      run() {
        begin()
        refused(sign('policy', freshClaims(keySetClaims(), policyClaims()), policyKey), /claims_invalid/)
        refused(sign('fresh', policyClaims({ ver: 2 }), freshness), /claims_invalid/)
        refused(sign('deny', freshClaims(keySetClaims(), policyClaims()), freshness), /claims_invalid/)
        refused(sign('keys', { ...policyClaims({ ver: 2 }), aud: 'acc_1.test' }, root), /claims_invalid/)
      },
    },
    test_faketime: { not: 'of the suite itself' },

    // test_expiration.py
    test_root_expired: { test: 'an expired key set' },
    test_timestamp_expired: {
      here: 'a freshness that has expired makes nothing young, also one that was never seen',
      run() {
        begin()
        const late = sign('fresh', freshClaims(keySetClaims(), policyClaims()), freshness)
        world.sleep(90 * HOUR)
        const before = clock.now()
        trust.accept(late)
        expect(trust.stage()).toBe('expired')
        expect(clock.now()).toEqual(before)
      },
    },
    test_snapshot_expired: {
      test: 'freeze: replayed documents make the policy stale, then expired; accepted documents stay',
    },
    test_targets_expired: { test: 'a policy that has expired' },
    test_expired_local_root: {
      here: 'with a key set that has expired the next one is taken',
      run() {
        begin()
        world.sleep(500 * 24 * HOUR)
        const keys = keySetClaims({ ver: 2 })
        expect(trust.accept(sign('keys', keys, root))).toMatchObject({ taken: true })
        expect(trust.accept(sign('policy', policyClaims({ ver: 2 }), policyKey))).toMatchObject({ taken: true })
        expect(trust.accept(sign('fresh', freshClaims(keys, policyClaims({ ver: 2 })), freshness))).toMatchObject({
          taken: true,
        })
        expect(trust.stage()).toBe('fresh')
      },
    },
    test_expired_local_timestamp: {
      here: 'after longer than any freshness lives the next one is taken',
      run() {
        begin()
        world.sleep(18 * 24 * HOUR)
        expect(trust.stage()).toBe('expired')
        expect(trust.accept(sign('fresh', freshClaims(keySetClaims(), policyClaims()), freshness))).toMatchObject({
          taken: true,
        })
        expect(trust.stage()).toBe('fresh')
      },
    },

    // test_keys.py
    test_snapshot_does_not_meet_threshold: { not: THRESHOLD },
    test_snapshot_has_too_few_keys: { not: THRESHOLD },
    test_duplicate_keys: { not: THRESHOLD },
    test_duplicate_sig_keyids: {
      here: 'several signatures on one document are no form that is read',
      run() {
        begin()
        const [header = '', payload = '', signature = ''] = sign('policy', policyClaims({ ver: 2 }), policyKey).split(
          '.',
        )
        const one = { protected: header, signature }
        refused(JSON.stringify({ payload, signatures: [one, one] }), /not a document/)
        refused(`${header}.${payload}.${signature}.${signature}`, /not a document/)
      },
    },
    test_keytype_and_scheme: {
      here: 'Ed25519 alone: a key set with another algorithm is refused whole',
      run() {
        begin()
        const record = { ...stranger.record, alg: 'ES256' as 'EdDSA' }
        refused(
          sign(
            'keys',
            keySetClaims({ ver: 2, keys: [token.record, policyKey.record, freshness.record, record] }),
            root,
          ),
          /claims_invalid/,
        )
      },
    },
    test_invalid_sig_in_valid_metadata: { not: THRESHOLD },

    // test_rollback.py
    test_new_timestamp_version_rollback: {
      test: 'does not renew the policy by a replayed freshness',
    },
    test_snapshot_rollback: { test: 'rollback of the freshness: it names an older policy' },
    test_targets_role_removal: {
      here: 'a freshness that no longer names a kind is refused',
      run() {
        begin()
        const { policy: _policy, ...rest } = freshClaims(keySetClaims(), policyClaims())
        refused(sign('fresh', rest, freshness), /claims_invalid/)
      },
    },
    test_targets_fast_forward_recovery: {
      test: 'fast forward: discards the policy of a stolen key and its version when the key is revoked',
    },
    test_new_snapshot_fast_forward_recovery: {
      here: 'what a stolen freshness key has named is forgotten with the key',
      run() {
        begin()
        const next = testKey('freshness', { seed: 8, iss: 'installation' })
        const far = { epoch: 0, ver: Number.MAX_SAFE_INTEGER, hash: 'x' }
        expect(
          trust.accept(
            sign('fresh', freshClaims(keySetClaims(), policyClaims(), { keys: far, policy: far }), freshness),
          ),
        ).toMatchObject({ taken: true })
        expect(trust.isBehind).toBe(true)
        const keys = keySetClaims({
          ver: 2,
          keys: [token.record, policyKey.record, { ...freshness.record, state: 'revoked' }, next.record],
        })
        expect(trust.accept(sign('keys', keys, root))).toMatchObject({ taken: true })
        world.sleep(1_000)
        expect(trust.accept(sign('fresh', freshClaims(keys, policyClaims()), next))).toMatchObject({ taken: true })
        expect(trust.isBehind).toBe(false)
        expect(trust.stage()).toBe('fresh')
      },
    },
    test_new_timestamp_fast_forward_recovery: { test: 'keeps its clock if the cloud sends one wrong time' },
    test_targets_rollback: { test: 'rollback of the policy' },

    // test_updater_key_rotations.py
    'test_root_rotation[1-of-1-key-rotation]': { not: 'the root is replaced by enrolment anew alone' },
    'test_root_rotation[1-of-1-key-rotation-fail-not-signed-with-old-key]': {
      test: 'the key set of a new root with a higher epoch, before re-enrolment',
    },
    'test_root_rotation[thresholds]': { not: THRESHOLD },
    'test_non_root_rotations[1-of-1-key-rotation]': {
      test: 'key rotation: accepts documents of the next key once it is published, and keeps the policy after its key retired',
    },
    'test_non_root_rotations[1-of-1-key-rotation-fail-not-signed-with-new-key]': {
      here: 'a key that is no longer in the set signs nothing',
      run() {
        begin()
        const next = testKey('policy', { seed: 9, iss: 'installation' })
        expect(
          trust.accept(
            sign('keys', keySetClaims({ ver: 2, keys: [token.record, next.record, freshness.record] }), root),
          ),
        ).toMatchObject({ taken: true })
        refused(sign('policy', policyClaims({ ver: 2 }), policyKey), /unknown_key/)
        expect(trust.accept(sign('policy', policyClaims({ ver: 2 }), next))).toMatchObject({ taken: true })
      },
    },
    'test_non_root_rotations[thresholds]': { not: THRESHOLD },

    // the rest
    'test_file_download.py': { not: DELEGATION },
    'test_updater_delegation_graphs.py': { not: DELEGATION },
    'test_static_repositories.py': { not: 'repositories in the format of TUF' },
    'test_quoting_issues.py': { not: 'kinds are a closed list; nothing of a document becomes a file name or a topic' },
  }

  for (const [upstream, ours] of Object.entries(CASES)) {
    if ('here' in ours) it(`${upstream}: ${ours.here}`, () => ours.run())
  }

  it('names only existing tests', () => {
    const text = ['trust.test.ts', 'trust-attacks.test.ts', 'trusted-time.test.ts']
      .map((file) => readFileSync(join(import.meta.dirname, file), 'utf8'))
      .join('\n')
    for (const [upstream, ours] of Object.entries(CASES)) {
      if (!('test' in ours)) continue
      expect(text, `${upstream}: ${ours.test}`).toContain(`'${ours.test}'`)
    }
  })
})
