import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Hono } from 'hono'
import { EMPTY_CONFIG } from '../../../../edge-agent/config.ts'
import { localApp } from '../../../../edge-agent/http/local-app.ts'
import { AGENT_OPERATIONS, type AgentOperation } from '../../../../edge-agent/http/operations.ts'
import { hashSecret, newSecret, type SecretKind } from '../../../../edge-agent/identity/identity.ts'
import { startAgent, type Agent } from '../../../../edge-agent/runtime.ts'
import { newKey } from '../../../../policy/documents/keys.ts'
import { newId } from '../../../../policy/ids.ts'
import { virtualPlatform } from '../../simulation/virtual/virtual-platform.ts'

/** A program or browser that is paired with the agent. */
export interface Pairing {
  readonly label: string
  readonly id: string
  readonly header: Readonly<Record<string, string>>
  isOpen: boolean
}

const HOST = 'gate.sim:8090'
const TURNS = 200
const QUIET = { info: () => undefined, warn: () => undefined, error: () => undefined }
const offline = () => Promise.reject(new Error('offline'))

/** An agent without network and documents, and its pairings: the rights of local callers need nothing else. */
export class Shop {
  readonly pairings: Pairing[] = []
  /** Operations that need a pairing, except streams, which do not end. */
  readonly operations = Object.values<AgentOperation>(AGENT_OPERATIONS).filter(
    ({ needsCredential, contentType }) => needsCredential && contentType !== 'text/event-stream',
  )
  readonly #platform
  readonly #folder = mkdtempSync(join(tmpdir(), 'untag-rights-'))
  readonly #agent: Agent
  readonly #app: Hono

  constructor(seed: number) {
    const platform = virtualPlatform({ seed })
    const { x, secret } = newKey(platform.random)
    const [agentId, storeId, ledgerId] = ['agt', 'st', 'led'].map((prefix) => newId(prefix, platform))
    const ids = { agentId: agentId ?? '', storeId: storeId ?? '', ledgerId: ledgerId ?? '' }
    const cloud = { cloud: 'http://cloud.sim/api/v1', mqttUrl: 'mqtt://cloud.sim', tenant: 'acc_1.test', generation: 1 }
    this.#platform = platform
    this.#agent = startAgent({
      platform,
      dataDir: this.#folder,
      identity: { ...ids, ...cloud, rootX: x, x, secret: secret.toString('base64url') },
      keepIdentity: () => undefined,
      secretFiles: { read: () => undefined, write: () => undefined },
      config: EMPTY_CONFIG,
      fetch: offline,
      openLine: offline,
      log: QUIET,
      onFatal: (why) => {
        throw why
      },
    })
    this.#app = localApp(this.#agent, { hosts: () => [HOST], log: QUIET, credential: () => undefined })
  }

  /** Pairs a program, as `untag edge pair` does. */
  pairProgram(): Pairing {
    const token = this.#store('pair', (hash, nowMs) => this.#pairings.addProgram(hash, 'till', nowMs))
    return this.#remember('program', token, { authorization: `Bearer ${token}` })
  }

  /** Makes a one-time link, and opens it twice. Returns how often it paired a browser. */
  async openLink(): Promise<number> {
    const code = this.#store('link', (hash, nowMs) => this.#pairings.addLink(hash, nowMs))
    let paired = 0
    for (let i = 0; i < 2; i++) {
      const answer = await this.#send({ method: 'POST', path: '/v1/pair' }, JSON.stringify({ code }), {})
      if (answer.status !== 200) continue
      paired++
      const cookie = (answer.headers.get('set-cookie') ?? '').split(';')[0] ?? ''
      this.#remember('browser', cookie.split('=')[1] ?? '', { cookie })
    }
    return paired
  }

  revoke(pairing: Pairing): void {
    this.#agent.ledger.commits.now(() => this.#pairings.revoke(pairing.id))
    pairing.isOpen = false
  }

  /** Calls an operation. `meanwhile` runs before the body arrives. */
  call(operation: AgentOperation, header: Pairing['header'], meanwhile?: () => void): Promise<Response> {
    const body = operation.method === 'POST' ? JSON.stringify(operation.example ?? {}) : undefined
    return this.#send(operation, body, header, meanwhile)
  }

  async stop(): Promise<void> {
    await this.#settled(this.#agent.stop())
    rmSync(this.#folder, { recursive: true, force: true })
  }

  get #pairings() {
    return this.#agent.ledger.pairings
  }

  #store(kind: SecretKind, store: (hash: string, nowMs: number) => void): string {
    const secret = newSecret(kind, this.#platform.random)
    this.#agent.ledger.commits.now(() => store(hashSecret(secret), this.#platform.clock.wall()))
    return secret
  }

  #remember(kind: 'program' | 'browser', secret: string, header: Pairing['header']): Pairing {
    const { id = '' } = this.#pairings.find(kind, hashSecret(secret), this.#platform.clock.wall()) ?? {}
    const made = { label: `pairing ${this.pairings.length}`, id, header, isOpen: true }
    this.pairings.push(made)
    return made
  }

  #send(
    { method, path }: Pick<AgentOperation, 'method' | 'path'>,
    body: string | undefined,
    header: Pairing['header'],
    meanwhile: () => void = () => undefined,
  ): Promise<Response> {
    const bytes = Buffer.from(body ?? '')
    const late = new ReadableStream<Uint8Array>(
      {
        pull(controller) {
          meanwhile()
          controller.enqueue(bytes)
          controller.close()
        },
      },
      { highWaterMark: 0 },
    )
    const type = { 'content-type': 'application/json', 'content-length': String(bytes.length) }
    const headers = { host: HOST, ...header, ...(body !== undefined && type) }
    const init = { method, headers, ...(body !== undefined && { body: late, duplex: 'half' }) } as RequestInit
    return this.#settled(Promise.resolve(this.#app.request(`http://${HOST}${path}`, init)))
  }

  async #settled<T>(work: Promise<T>): Promise<T> {
    let isDone = false
    const done = () => void (isDone = true)
    work.then(done, done)
    while (!isDone) {
      for (let turn = 0; turn < TURNS && !isDone; turn++) await new Promise((resolve) => setImmediate(resolve))
      if (!isDone) await this.#platform.advance(1_000)
    }
    return work
  }
}
