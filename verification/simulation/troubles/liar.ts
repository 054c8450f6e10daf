import type { Database as Connection } from 'better-sqlite3'
import { messagesOf } from '../../../edge-agent/link/login/messages.ts'
import type { Identity } from '../../../edge-agent/identity/identity.ts'
import { DOCUMENT_KINDS } from '../../../policy/documents/kinds.ts'
import { signer } from '../../../policy/documents/keys.ts'
import { signDocument } from '../../../policy/documents/signed-document.ts'
import { rowHash } from '../../../policy/journal.ts'
import { agentTopic } from '../../../policy/topics.ts'
import type { AgentNode } from '../nodes/agent-node.ts'
import { CLOUD_ORIGIN, type CloudNode } from '../nodes/cloud-node.ts'
import type { Core } from '../virtual/core.ts'
import { request, type HttpServer, type SimAnswer } from '../virtual/http.ts'
import { lanHost, type Lan } from '../virtual/lan.ts'
import { lieOracle } from '../oracles/lie-oracle.ts'
import { liesOf } from './lies.ts'
import type { Json, Merchant } from '../nodes/merchant.ts'
import { newWire, type Wire } from '../virtual/wire.ts'

/**
 *   liar ── signed rows about others ──▶ cloud          liar ── acknowledgements, commands ──▶ broker ──▶ other agents
 *
 * An enrolled agent that signs correctly and reports anything, in the place of the real one of that identity. It knows every id that
 * the cloud knows, and reaches every topic, as at a broker that checks nothing.
 */
export interface Liar {
  /** It becomes the receipt home, and then another is: from then on it is a former one, and lies every so often. */
  begin(): Promise<void>
  /** Sends one lie. */
  lie(): void
  /** Ends its lies. */
  stop(): void
  /** A commit of the cloud is on its disk. */
  cloudCommitted(db: Connection): void
  /** A commit of another agent's ledger is on its disk. */
  agentCommitted(node: AgentNode, db: Connection): void
}

export interface LiarParts {
  core: Core
  cloud: CloudNode
  manager: Merchant
  identity: Identity
  agents: readonly AgentNode[]
  lan: Lan
  /** The last row of each ledger that the cloud has. */
  taken: ReadonlyMap<string, number>
  /** Longest pause between two lies, ms. */
  pauseMs: number
}

const ANSWER_WITHIN_MS = 5_000
/** How often it answers a row of another agent with an acknowledgement of its own. */
const ACKNOWLEDGES = 0.3
/** Lies in one world at most. */
const LIES_LIMIT = 200
/** Acknowledgements of its own that it keeps. */
const ACKS_KEPT = 200

/** The lying agent of one world. */
export function liar({ core, cloud, manager, identity, agents, lan, taken, pauseMs }: LiarParts): Liar {
  const { scheduler, trace } = core
  const chance = core.chance.fork('liar')
  const wire = newWire('liar', core)
  const { agentId, storeId } = identity
  const own = signer(identity.x, Buffer.from(identity.secret, 'base64url'))
  /** Its own acknowledgements, in the order of its rows. */
  const acks: { seq: number; text: string }[] = []
  let ownEpoch: number | undefined
  let token: string | undefined
  let deviceId = ''
  let isBusy = false
  let left = LIES_LIMIT
  const lies = liesOf(chance, () => ({
    agentId,
    storeId,
    signer: own,
    ownEpoch,
    others: agents.map((node) => node.identity.agentId),
    nowMs: scheduler.nowMs,
  }))
  const check = lieOracle(core, agentId, lies.watch)

  async function post(url: string, body: Json, way: { wire: Wire; server: HttpServer }): Promise<Partial<SimAnswer>> {
    const gaveUp = new AbortController()
    const cancel = scheduler.after(ANSWER_WITHIN_MS, () => gaveUp.abort())
    const isToCloud = way.server === cloud
    const headers = {
      'content-type': 'application/json',
      ...(isToCloud && token !== undefined && { authorization: `Bearer ${token}` }),
    }
    try {
      const asked = { url, method: 'POST', headers, body: JSON.stringify(body) }
      return await request(asked, { ...way, scheduler, signal: gaveUp.signal })
    } catch {
      return {}
    } finally {
      cancel()
    }
  }

  async function call(operation: string, body: Json): Promise<Json> {
    const { status, text = '' } = await post(`${CLOUD_ORIGIN}/api/v1/${operation}`, body, { wire, server: cloud })
    if (status === 401) token = undefined
    return status === 200 ? (JSON.parse(text) as Json) : {}
  }

  async function logIn(generation: number): Promise<void> {
    const { challenge } = await call('agentLogin', { agentId })
    if (typeof challenge !== 'string') return
    const assertion = messagesOf(identity, { generation }).assertion(challenge, scheduler.nowMs)
    const { accessToken } = await call('agentLogin', { agentId, assertion })
    if (typeof accessToken === 'string') token = accessToken
  }

  /** Sends one row on top of what the cloud has of its ledger. */
  async function report(db: Connection): Promise<void> {
    const head = db
      .prepare<[string], { generation: number; last_seq: number; head_hash: string }>(
        'SELECT generation, last_seq, head_hash FROM agent WHERE agent_id = ?',
      )
      .get(agentId)
    if (!head) return
    if (token === undefined) await logIn(head.generation)
    const body = lies.next(db)
    if (token === undefined || !body) return
    const seq = head.last_seq + 1
    const row = { seq, hash: rowHash(head.head_hash, seq, JSON.stringify(body)), body }
    const batch = messagesOf(identity, { generation: head.generation }).batch(head.head_hash, [row], scheduler.nowMs)
    trace.note('liar', `reports ${JSON.stringify(body.evidence ?? body.event)}`)
    const { ack } = await call('reportProtectionEvents', { batch })
    if (typeof ack === 'string') acks.push({ seq, text: ack })
    if (acks.length > ACKS_KEPT) acks.shift()
  }

  function publish(to: string, name: 'ack' | 'command', payload: string): void {
    cloud.running?.broker.publish({ topic: agentTopic(storeId, to, name), payload, retain: false })
  }

  /** Signed with a key that signs nothing of that kind. */
  function command(to: string): string {
    const iat = Math.floor(scheduler.nowMs / 1_000)
    const claims = { aud: to, iat, exp: iat + 60, jti: 'j', command: chance.one(['revoke', 'void']), nonce: 'n' }
    return chance.happens(0.5) ? JSON.stringify(claims) : signDocument(DOCUMENT_KINDS.command, claims, own)
  }

  const failed = (error: unknown) => core.violate('fault', `the liar fails: ${(error as Error).stack}`)

  function lie(): void {
    if (left-- <= 0) return
    const node = chance.one(agents)
    const to = node.identity.agentId
    if (chance.happens(0.1)) return publish(to, 'command', command(to))
    if (chance.happens(0.2)) return void tellNeighbour(node).catch(failed)
    const db = cloud.disk.reading
    if (isBusy || !db || !cloud.running) return
    isBusy = true
    report(db)
      .catch(failed)
      .finally(() => void (isBusy = false))
  }

  function lieOn(): void {
    scheduler.after(chance.between(1, pauseMs), () => {
      lie()
      if (left > 0) lieOn()
    })
  }

  /** Says to another agent what that may believe nobody: a release without a receipt, and a question in a third one's name. */
  async function tellNeighbour(to: AgentNode): Promise<void> {
    const [path, body] = chance.happens(0.7)
      ? ['releases', { notice: lies.notice(deviceId) }]
      : ['home/redeem', { question: lies.question(to.identity.agentId) }]
    const url = `http://${lanHost(to.name)}/v1/${path}`
    const server = lan.at(url)
    if (!server) return
    const { status } = await post(url, body, { wire: lan.wire, server })
    trace.note('liar', `tells ${to.name} ${path}: ${status}`)
    if (status === 200) core.violate('I16', `${to.name} believes what the lying agent sends to /v1/${path}`)
  }

  return {
    async begin() {
      for (const home of [agentId, agents[0]?.identity.agentId ?? 'cloud']) {
        const answer = await manager.call('moveReceiptHome', { storeId, home })
        if (home === agentId && answer?.ok) ownEpoch = Number(answer.body['homeEpoch'])
      }
      // A device of its own, which releases: what it announces of that is checked by the receipt alone.
      const made = await manager.call('registerDevice', { storeId, deviceType: 'pos_deactivator', name: 'Des Lügners' })
      if (made?.ok) deviceId = String(made.body['deviceId'])
      await logIn(1)
      await call('reportDeviceHeartbeat', { deviceId })
      lieOn()
    },
    stop: () => void (left = 0),
    lie,
    cloudCommitted: check,
    agentCommitted(node, db) {
      const acked = Number(
        db.prepare<[], { value: string }>("SELECT value FROM mark WHERE name = 'acked'").get()?.value ?? 0,
      )
      const { ledgerId: ledger, agentId: to } = node.identity
      const had = taken.get(ledger)
      if (had !== undefined && acked > had)
        core.violate('I16', `${node.name} holds row ${acked} for acknowledged, and the cloud has ${had}`)
      const head = db.prepare<[], { seq: number | null }>('SELECT MAX(seq) AS seq FROM journal').get()?.seq ?? 0
      // That of the same number, if it can: the other has a row that the cloud does not have yet.
      const fitting = acks.findLast(({ seq }) => seq > acked && seq <= head)
      if (fitting && chance.happens(ACKNOWLEDGES)) scheduler.after(1, () => publish(to, 'ack', fitting.text))
    },
  }
}
