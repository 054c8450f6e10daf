import type { Database as Connection } from 'better-sqlite3'
import { messageSigner } from '../../../../edge-agent/link/login/sign-messages.ts'
import type { Identity } from '../../../../edge-agent/identity/identity.ts'
import { DOCUMENT_KINDS } from '../../../../policy/documents/kinds.ts'
import { createSigner, type Signer } from '../../../../policy/documents/keys.ts'
import { signDocument } from '../../../../policy/documents/signed-document.ts'
import { rowHash } from '../../../../policy/journal.ts'
import { agentTopic } from '../../../../policy/mqtt-topics.ts'
import type { AgentNode } from '../nodes/agent-node.ts'
import { CLOUD_ORIGIN, type CloudNode } from '../nodes/cloud-node.ts'
import type { Core } from '../virtual/core.ts'
import { request, type HttpServer, type SimResponse } from '../virtual/http.ts'
import { lanHost, type Lan } from '../virtual/lan.ts'
import { forgeryOracle } from '../oracles/forgery-oracle.ts'
import { forgedRows, type ForgedRows } from './forged-rows.ts'
import type { Json, Merchant } from '../nodes/merchant.ts'
import { newWire, type Wire } from '../virtual/wire.ts'
import type { Chance } from '../virtual/chance.ts'

/**
 * An agent that is enrolled and signs correctly, but reports false data about other agents. It replaces the real agent
 * with the same identity. It knows all ids that the cloud knows, and can publish to every topic of the broker.
 */
export interface LyingAgent {
  /**
   * Makes the liar the receipt home, and later makes another agent the receipt home. Then the liar, as the former home,
   * starts to send forged messages at random times.
   */
  begin(): Promise<void>
  /** Sends one forged message. */
  lie(): void
  /** Stops the forged messages. */
  stop(): void
  /** Called after a durable commit of the cloud. */
  cloudCommitted(db: Connection): void
  /** Called after a durable commit in another agent's ledger. */
  agentCommitted(node: AgentNode, db: Connection): void
}

export interface LyingAgentParts {
  core: Core
  cloud: CloudNode
  manager: Merchant
  identity: Identity
  agents: readonly AgentNode[]
  lan: Lan
  /** Number of the last row of each ledger in the cloud. */
  storedHeads: ReadonlyMap<string, number>
  /** Longest pause between two forged messages, ms. */
  pauseMs: number
}

const ANSWER_WITHIN_MS = 5_000
/** Probability of a forged acknowledgement after a commit of an honest agent. */
const ACKNOWLEDGES = 0.3
/** Maximum number of forged messages in a run. */
const LIES_LIMIT = 200
/** Maximum number of acknowledgements that the liar keeps. */
const ACKS_KEPT = 200

/** Creates the lying agent of a run. */
export function newLyingAgent(parts: LyingAgentParts): LyingAgent {
  return new SimulatedLiar(parts)
}

class SimulatedLiar implements LyingAgent {
  readonly #core: LyingAgentParts['core']
  readonly #cloud: LyingAgentParts['cloud']
  readonly #manager: LyingAgentParts['manager']
  readonly #identity: LyingAgentParts['identity']
  readonly #agents: LyingAgentParts['agents']
  readonly #lan: LyingAgentParts['lan']
  readonly #storedHeads: LyingAgentParts['storedHeads']
  readonly #pauseMs: LyingAgentParts['pauseMs']
  readonly #chance: Chance
  readonly #wire: Wire
  readonly #own: Signer
  /** Acknowledgements of the liar's own rows, in row order. */
  readonly #acks: { seq: number; text: string }[] = []
  #ownEpoch: number | undefined
  #token: string | undefined
  #deviceId = ''
  #isBusy = false
  #left = LIES_LIMIT
  readonly #lies: ForgedRows
  readonly #check: (db: Connection) => void

  constructor({ core, cloud, manager, identity, agents, lan, storedHeads, pauseMs }: LyingAgentParts) {
    this.#core = core
    this.#cloud = cloud
    this.#manager = manager
    this.#identity = identity
    this.#agents = agents
    this.#lan = lan
    this.#storedHeads = storedHeads
    this.#pauseMs = pauseMs
    this.#chance = this.#core.chance.fork('liar')
    this.#wire = newWire('liar', this.#core)
    this.#own = createSigner(this.#identity.x, Buffer.from(this.#identity.secret, 'base64url'))
    this.#lies = forgedRows(this.#chance, () => ({
      agentId: this.#identity.agentId,
      storeId: this.#identity.storeId,
      signer: this.#own,
      ownEpoch: this.#ownEpoch,
      others: this.#agents.map((node) => node.identity.agentId),
      nowMs: this.#core.scheduler.nowMs,
    }))
    this.#check = forgeryOracle(this.#core, this.#identity.agentId, this.#lies.watch)
  }

  lie(): void {
    if (this.#left-- <= 0) return
    const node = this.#chance.one(this.#agents)
    const to = node.identity.agentId
    if (this.#chance.happens(0.1)) return this.#publish(to, 'command', this.#command(to))
    if (this.#chance.happens(0.2)) return void this.#sendToNeighbour(node).catch(this.#failed)
    const db = this.#cloud.disk.reading
    if (this.#isBusy || !db || !this.#cloud.running) return
    this.#isBusy = true
    this.#report(db)
      .catch(this.#failed)
      .finally(() => void (this.#isBusy = false))
  }

  async begin(): Promise<void> {
    for (const home of [this.#identity.agentId, this.#agents[0]?.identity.agentId ?? 'cloud']) {
      const answer = await this.#manager.call('moveReceiptHome', { storeId: this.#identity.storeId, home })
      if (home === this.#identity.agentId && answer?.ok) this.#ownEpoch = Number(answer.body['homeEpoch'])
    }
    // A device of the liar, so that its notices name a device of the store.
    const made = await this.#manager.call('registerDevice', {
      storeId: this.#identity.storeId,
      deviceType: 'pos_deactivator',
      name: 'Des Lügners',
    })
    if (made?.ok) this.#deviceId = String(made.body['deviceId'])
    await this.#logIn(1)
    await this.#call('reportDeviceHeartbeat', { deviceId: this.#deviceId })
    this.#scheduleLies()
  }

  stop(): void {
    this.#left = 0
  }

  cloudCommitted(db: Connection): void {
    this.#check(db)
  }

  agentCommitted(node: AgentNode, db: Connection): void {
    const acked = Number(
      db.prepare<[], { value: string }>("SELECT value FROM mark WHERE name = 'acked'").get()?.value ?? 0,
    )
    const { ledgerId: ledger, agentId: to } = node.identity
    const had = this.#storedHeads.get(ledger)
    if (had !== undefined && acked > had)
      this.#core.violate('I16', `${node.name} treats row ${acked} as acknowledged, but the cloud has ${had}`)
    const head = db.prepare<[], { seq: number | null }>('SELECT MAX(seq) AS seq FROM journal').get()?.seq ?? 0
    // Prefers the acknowledgement of a row that the agent has and the cloud may not have.
    const fitting = this.#acks.findLast(({ seq }) => seq > acked && seq <= head)
    if (fitting && this.#chance.happens(ACKNOWLEDGES))
      this.#core.scheduler.after(1, () => this.#publish(to, 'ack', fitting.text))
  }

  async #post(url: string, body: Json, way: { wire: Wire; server: HttpServer }): Promise<Partial<SimResponse>> {
    const gaveUp = new AbortController()
    const cancel = this.#core.scheduler.after(ANSWER_WITHIN_MS, () => gaveUp.abort())
    const isToCloud = way.server === this.#cloud
    const headers = {
      'content-type': 'application/json',
      ...(isToCloud && this.#token !== undefined && { authorization: `Bearer ${this.#token}` }),
    }
    try {
      const message = { url, method: 'POST', headers, body: JSON.stringify(body) }
      return await request(message, { ...way, scheduler: this.#core.scheduler, signal: gaveUp.signal })
    } catch {
      return {}
    } finally {
      cancel()
    }
  }

  async #call(operation: string, body: Json): Promise<Json> {
    const { status, text = '' } = await this.#post(`${CLOUD_ORIGIN}/api/v1/${operation}`, body, {
      wire: this.#wire,
      server: this.#cloud,
    })
    if (status === 401) this.#token = undefined
    return status === 200 ? (JSON.parse(text) as Json) : {}
  }

  async #logIn(generation: number): Promise<void> {
    const { challenge } = await this.#call('agentLogin', { agentId: this.#identity.agentId })
    if (typeof challenge !== 'string') return
    const assertion = messageSigner(this.#identity, { generation }).assertion(challenge, this.#core.scheduler.nowMs)
    const { accessToken } = await this.#call('agentLogin', { agentId: this.#identity.agentId, assertion })
    if (typeof accessToken === 'string') this.#token = accessToken
  }

  /** Sends one forged row, as the next row of the liar's ledger in the cloud. */
  async #report(db: Connection): Promise<void> {
    const head = db
      .prepare<[string], { generation: number; last_seq: number; head_hash: string }>(
        'SELECT generation, last_seq, head_hash FROM agent WHERE agent_id = ?',
      )
      .get(this.#identity.agentId)
    if (!head) return
    if (this.#token === undefined) await this.#logIn(head.generation)
    const body = this.#lies.next(db)
    if (this.#token === undefined || !body) return
    const seq = head.last_seq + 1
    const row = { seq, hash: rowHash(head.head_hash, seq, JSON.stringify(body)), body }
    const batch = messageSigner(this.#identity, { generation: head.generation }).batch(
      head.head_hash,
      [row],
      this.#core.scheduler.nowMs,
    )
    this.#core.trace.add('liar', `reports ${JSON.stringify(body.evidence ?? body.event)}`)
    const { ack } = await this.#call('reportProtectionEvents', { batch })
    if (typeof ack === 'string') this.#acks.push({ seq, text: ack })
    if (this.#acks.length > ACKS_KEPT) this.#acks.shift()
  }

  #publish(to: string, name: 'ack' | 'command', payload: string): void {
    this.#cloud.running?.broker.publish({ topic: agentTopic(this.#identity.storeId, to, name), payload, retain: false })
  }

  /** A command without a valid signature of the cloud. */
  #command(to: string): string {
    const iat = Math.floor(this.#core.scheduler.nowMs / 1_000)
    const claims = { aud: to, iat, exp: iat + 60, jti: 'j', command: this.#chance.one(['revoke', 'void']), nonce: 'n' }
    return this.#chance.happens(0.5) ? JSON.stringify(claims) : signDocument(DOCUMENT_KINDS.command, claims, this.#own)
  }

  readonly #failed = (error: unknown) => this.#core.violate('fault', `the liar fails: ${(error as Error).stack}`)

  #scheduleLies(): void {
    this.#core.scheduler.after(this.#chance.between(1, this.#pauseMs), () => {
      this.lie()
      if (this.#left > 0) this.#scheduleLies()
    })
  }

  /** Sends a forged release notice or home request to another agent. That agent must reject the message. */
  async #sendToNeighbour(to: AgentNode): Promise<void> {
    const db = this.#cloud.disk.reading
    const notice = db && this.#chance.happens(0.2) ? this.#lies.saleNotice(db) : undefined
    const [path, body] =
      notice !== undefined
        ? ['till-notices', { notice }]
        : this.#chance.happens(0.7)
          ? ['releases', { notice: this.#lies.notice(this.#deviceId) }]
          : ['home/redeem', { question: this.#lies.question(to.identity.agentId) }]
    const url = `http://${lanHost(to.name)}/v1/${path}`
    const server = this.#lan.at(url)
    if (!server) return
    const { status } = await this.#post(url, body, { wire: this.#lan.wire, server })
    this.#core.trace.add('liar', `sends ${path} to ${to.name}: ${status}`)
    if (status === 200) this.#core.violate('I16', `${to.name} accepts a forged message at /v1/${path}`)
  }
}
