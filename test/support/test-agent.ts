import { enrolmentCodeHash } from '../../policy/documents/agent-messages.ts'
import { DOCUMENT_KINDS } from '../../policy/documents/kinds.ts'
import { newKey, publicJwk, createSigner, type Signer } from '../../policy/documents/keys.ts'
import { signDocument } from '../../policy/documents/signed-document.ts'
import type { ProtectionEvent } from '../../policy/protection-events.ts'
import { newId } from '../../policy/ids.ts'
import { genesisHash, rowHash, type Evidence, type JournalRow } from '../../policy/journal.ts'
import { messageSigner, type MessageSigner } from '../../edge-agent/link/login/sign-messages.ts'
import type { Answer, Json } from './cloud.ts'
import type { Shop } from './shop.ts'

/** A simulated agent for tests of the cloud. The test writes its journal. */
export interface TestAgent {
  agentId: string
  storeId: string
  ledgerId: string
  x: string
  signer: Signer
  messages: MessageSigner
  token: string
  mqttChallenge: string
  enrolment: Json
  call(operation: string, body: Json): Promise<Answer>
  login(): Promise<Json>
  /** Creates the next journal row, chained to the last one. */
  row(body: { evidence?: Evidence; event?: ProtectionEvent; atMs?: number }): JournalRow
  /** Sends a batch. The cloud may store its first rows only. */
  reportOnce(rows: JournalRow[], after?: string): Promise<Answer>
  /** Sends a batch, and the rows again that the cloud left out. */
  report(rows: JournalRow[], after?: string): Promise<Answer>
  hashBefore(seq: number): string
}

/** Enrols an agent. `former`: the agent that the new one replaces. */
export async function enrolTestAgent(shop: Shop, storeId = shop.storeId, former?: TestAgent): Promise<TestAgent> {
  const { platform } = shop.cloud
  const { code } = await shop.ok('createEnrolmentCode', { storeId })
  const { x, secret } = newKey(platform.random)
  const own = createSigner(x, secret)
  const ledgerId = newId('led', platform)
  const proof = proofFor(shop, code, ledgerId, own)
  const replaces = former && { agentId: former.agentId, proof: proofFor(shop, code, ledgerId, former.signer) }
  const answer = await shop.cloud.call(null, 'enrolEdgeAgent', {
    code,
    publicJwk: publicJwk(x),
    proof,
    ...(replaces && { replaces }),
  })
  if (answer.status !== 200) throw new Error(answer.text)
  const { agentId } = answer.body
  const identity = {
    agentId,
    storeId,
    tenant: '',
    ledgerId,
    generation: 1,
    cloud: shop.cloud.baseUrl,
    mqttUrl: '',
    rootX: '',
    x,
    secret: secret.toString('base64url'),
  }
  const messages = messageSigner(identity, {
    get generation() {
      return identity.generation
    },
  })
  const hashes = [genesisHash(ledgerId, 1)]
  const agent: TestAgent = {
    agentId,
    storeId,
    ledgerId,
    x,
    signer: own,
    messages,
    token: '',
    mqttChallenge: '',
    enrolment: answer.body,
    call: (operation, body) => shop.cloud.call(agent.token, operation, body),
    async login() {
      const { challenge } = (await shop.cloud.call(null, 'agentLogin', { agentId })).body
      const { body } = await shop.cloud.call(null, 'agentLogin', {
        agentId,
        assertion: messages.assertion(challenge, platform.clock.wall()),
      })
      agent.token = body.accessToken
      if (body.ledger?.generation > identity.generation) {
        identity.generation = body.ledger.generation
        hashes.splice(0, hashes.length, genesisHash(ledgerId, identity.generation))
      }
      agent.mqttChallenge = body.mqttChallenge
      return body
    },
    row({ evidence, event, atMs = platform.clock.wall() }) {
      const seq = hashes.length
      const body = { atMs: Math.floor(atMs), ...(evidence && { evidence }), ...(event && { event }) }
      const hash = rowHash(hashes.at(-1) ?? '', seq, JSON.stringify(body))
      hashes.push(hash)
      return { seq, hash, body }
    },
    hashBefore: (seq) => hashes[seq - 1] ?? '',
    reportOnce: (rows, after) =>
      shop.cloud.call(agent.token, 'reportProtectionEvents', {
        batch: messages.batch(after ?? hashes[(rows[0]?.seq ?? 1) - 1] ?? '', rows, platform.clock.wall()),
      }),
    async report(rows, after) {
      const answer = await agent.reportOnce(rows, after)
      const { accepted = 0, duplicates = 0 } = answer.body
      const done = accepted + duplicates
      if (answer.status !== 200 || accepted === 0 || done >= rows.length) return answer
      const rest = await agent.report(rows.slice(done), rows[done - 1]?.hash)
      const sums = { accepted: accepted + rest.body.accepted, duplicates: duplicates + rest.body.duplicates }
      return { ...rest, body: { ...rest.body, ...sums } }
    },
  }
  await agent.login()
  return agent
}

export function proofFor(
  shop: Shop,
  code: string,
  ledger: string,
  by: Signer,
  aud = shop.cloud.baseUrl,
  aheadS = 0,
): string {
  const iat = Math.floor(shop.cloud.platform.clock.wall() / 1_000) + aheadS
  return signDocument(
    DOCUMENT_KINDS.enrolment,
    { aud, iat, exp: iat + 300, codeHash: enrolmentCodeHash(code), ledger },
    by,
  )
}
