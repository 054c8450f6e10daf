import { z } from 'zod'
import { crockford } from '../../policy/base32.ts'
import {
  enrolmentCodeHash,
  normaliseEnrolmentCode,
  PREDECESSORS_LIMIT,
  type EnrolmentClaims,
} from '../../policy/documents/agent-messages.ts'
import { decodeUnverifiedClaims, openDocument, signDocument } from '../../policy/documents/signed-document.ts'
import { DOCUMENT_KINDS } from '../../policy/documents/kinds.ts'
import { newKey, publicJwk, createSigner, thumbprint, type Signer } from '../../policy/documents/keys.ts'
import { KeySetClaims } from '../../policy/documents/store-documents.ts'
import { newId } from '../../policy/ids.ts'
import type { Platform } from '../../policy/platform.ts'
import { openLedger, LEDGER_ID_KEY } from '../ledger/ledger.ts'
import { openAgentClock } from '../trust/time/clock.ts'
import type { Identity } from '../identity/identity.ts'
import { Trust } from '../trust/trust.ts'
import { rootRing } from '../trust/verify/open-claims.ts'
import { httpClient, type Fetch } from '../link/wire/http-client.ts'
import { openLedgerFile } from '../ledger/file/ledger-file.ts'
import { Journal } from '../ledger/journal/journal.ts'
import { openMetadata } from '../ledger/file/watermark.ts'

/** Metadata keys that depend on the former cloud. The agent always deletes these keys. */
const CLOUD_METADATA = [
  'deny_seq',
  'last_fresh',
  'last_contact_ms',
  'cloud_generation',
  'cloud_generation_doubted',
  'tokens_since_s',
  'resync_from',
  'resync_until',
  'online_only_until',
  'denials_awaited',
  'restored',
  'revoked',
  'key_since_ms',
  'rotate_key_asked',
]

/**
 * Metadata keys that depend on the root key. The agent deletes these metadata keys if the root key has changed. A thief
 * of the former root key may have revoked good keys or signed a wrong time.
 */
const ROOT_METADATA = ['revoked_kids', 'forgotten_revocations', 'clock']

/**
 * Assigns the ledger to a new identity, in one transaction. Used rights stay used, and all signed documents are
 * discarded.
 *
 * The unacknowledged rows get new numbers and hashes for the new ledger id. After a restore of the cloud, all stored
 * rows get new numbers and hashes. Returns the number of rows that the agent will send.
 */
export function adoptLedger(
  file: string,
  former: Pick<Identity, 'rootX'> | undefined,
  next: Pick<Identity, 'ledgerId' | 'generation' | 'rootX'>,
): number {
  const db = openLedgerFile(file)
  try {
    return db
      .transaction(() => {
        const metadata = openMetadata(db)
        const journal = new Journal(db, metadata, next.ledgerId, next.generation)
        journal.resendAll()
        journal.restart(next.generation)
        const isOtherRoot = former !== undefined && former.rootX !== next.rootX
        for (const name of isOtherRoot ? [...CLOUD_METADATA, ...ROOT_METADATA] : CLOUD_METADATA)
          db.prepare('DELETE FROM mark WHERE name = ?').run(name)
        db.prepare('DELETE FROM document').run()
        metadata.set(LEDGER_ID_KEY, next.ledgerId)
        return journal.head.seq
      })
      .immediate()
  } finally {
    db.close()
  }
}

export type Enrolled = { ok: true; identity: Identity; documents: string[] } | { ok: false; why: string }

const ENROL_WITHIN_MS = 10_000
/** Last part of the address of a cloud. A proxy may use another path. */
const API_PATH = '/api/v1'
const RANDOM_CHARACTERS = 12
const ROOT_BYTES = 10
/**
 * Fields of the enrolment answer that the agent uses. The agent parses these fields before it has verified the server.
 */
const EnrolmentAnswer = z.object({
  agentId: z.string(),
  storeId: z.string(),
  root: z.object({ x: z.string().length(43) }),
  documents: z.array(z.string()).max(100),
  mqtt: z.object({ url: z.string() }),
})

interface EnrolOptions {
  cloud: string
  code: string
  name?: string
  former?: Identity
  platform: Platform
  fetch: Fetch
}

/**
 * Enrols this agent with a code from `createEnrolmentCode`. Checks that the root key of the answering cloud matches the
 * code. `former`: the predecessor whose ledger this agent continues. The keys of the predecessors sign the request too, because a restored cloud may know only
 * an older one.
 */
export async function enrol(options: EnrolOptions): Promise<Enrolled> {
  const { platform, fetch } = options
  const cloud = options.cloud.replace(/\/+$/, '')
  const code = readCode(options.code)
  if (!code) return refuse('the code must look like K7QX-4M2P-9TRW-0000-0000-0000-0000: copy the whole code')
  const { x, secret } = newKey(platform.random)
  const ledgerId = newId('led', platform)
  const body = requestOf(options, enrolmentClaims(cloud, code.text, ledgerId, platform), { x, secret })
  const answer = await httpClient(cloud, fetch, platform).post('enrolEdgeAgent', body, { timeoutMs: ENROL_WITHIN_MS })
  if (answer.kind === 'unreachable') return refuse(`no answer from ${cloud}: check the address and the network`)
  if (answer.kind === 'refused')
    return refuse(
      answer.status === 404 && !cloud.endsWith(API_PATH)
        ? `${answer.message}: the address of a cloud ends in ${API_PATH}`
        : answer.message,
    )
  const { data: answered } = EnrolmentAnswer.safeParse(answer.body)
  if (!answered)
    return refuse(`the server at ${cloud} sent no enrolment: check that the address is the API of an untag cloud`)
  const { agentId, storeId, root, documents, mqtt } = answered
  // The code contains the thumbprint of the root key, because TLS alone does not prove which cloud answers.
  if (!thumbprint(root.x).subarray(0, ROOT_BYTES).equals(code.root))
    return refuse(
      'the cloud that answered did not create this code: stop the enrolment and report this to the person who gave you the code',
    )
  const tenant = tenantOf(documents, root.x)
  if (tenant === undefined) return refuse('the key set of the cloud is not signed by its root')
  const ids = { agentId, storeId, tenant, ledgerId, generation: 1 }
  const keys = { rootX: root.x, x, secret: secret.toString('base64url') }
  const { former } = options
  const identity = {
    ...ids,
    cloud,
    mqttUrl: mqtt.url,
    ...keys,
    ...(former && { predecessors: predecessorsOf(former) }),
  }
  return { ok: true, identity, documents }
}

function refuse(why: string): Enrolled {
  return { ok: false, why }
}

/**
 * Returns the normalised code, and the thumbprint of the root key that the code contains. Undefined if the code is
 * malformed.
 */
function readCode(text: string): { text: string; root: Uint8Array } | undefined {
  const code = normaliseEnrolmentCode(text)
  const root = crockford.decode(code.slice(RANDOM_CHARACTERS))
  return code.length === 28 && root?.length === ROOT_BYTES ? { text: code, root } : undefined
}

function enrolmentClaims(cloud: string, code: string, ledgerId: string, { clock }: Platform): EnrolmentClaims {
  const iat = Math.floor(clock.wall() / 1_000)
  return { aud: cloud, iat, exp: iat + 300, codeHash: enrolmentCodeHash(code), ledger: ledgerId }
}

/** The agents whose ledger the successor of `former` continues, newest first. */
function predecessorsOf({ agentId, x, secret, predecessors = [] }: Identity): NonNullable<Identity['predecessors']> {
  return [{ agentId, x, secret }, ...predecessors].slice(0, PREDECESSORS_LIMIT)
}

/** Returns the request, signed with the new key. With `former`, the keys of the predecessors also sign the request. */
function requestOf(
  { code, name, former }: EnrolOptions,
  claims: EnrolmentClaims,
  { x, secret }: { x: string; secret: Buffer },
): object {
  const signedWith = (key: Signer) => signDocument(DOCUMENT_KINDS.enrolment, claims, key)
  const [replaces, ...predecessors] = (former ? predecessorsOf(former) : []).map((each) => ({
    agentId: each.agentId,
    proof: signedWith(createSigner(each.x, Buffer.from(each.secret, 'base64url'))),
  }))
  return {
    code,
    publicJwk: publicJwk(x),
    proof: signedWith(createSigner(x, secret)),
    ...(replaces && { replaces, predecessors }),
    ...(name !== undefined && { name }),
  }
}

/** Stores the documents of the enrolment answer, so that the agent can start offline. */
export function storeFirstDocuments(
  file: string,
  identity: Identity,
  documents: readonly string[],
  platform: Platform,
): void {
  const ledger = openLedger({
    file,
    ledgerId: identity.ledgerId,
    generation: identity.generation,
    onFailure: (failure) => {
      throw failure
    },
  })
  const trust = new Trust(identity, ledger, openAgentClock(ledger, platform.clock))
  // A document may need keys and time from other documents. Each round accepts at least one more document, so the order
  // of the documents does not matter.
  for (let round = 0; round < documents.length; round++) for (const document of documents) trust.accept(document)
  ledger.close()
}

/** Returns the audience of the key set: the account and mode whose documents this agent accepts. */
function tenantOf(documents: readonly string[], rootX: string): string | undefined {
  const keys = rootRing({ rootX })
  for (const jws of documents) {
    const { aud: audience } = decodeUnverifiedClaims(jws)
    if (typeof audience !== 'string') continue
    const opened = openDocument<KeySetClaims>(jws, DOCUMENT_KINDS.keys, { keys, audience })
    if (opened.ok && KeySetClaims.safeParse(opened.claims).success) return audience
  }
  return undefined
}
