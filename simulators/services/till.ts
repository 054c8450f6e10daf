interface Piece {
  readonly name: string
  readonly priceCent: number
  /** Undefined: goods without a tag. */
  readonly epc?: string | undefined
}

/** Answer of the agent. Undefined: none came. */
interface TillAnswer {
  readonly status: number
  readonly body: {
    readonly error?: unknown
    readonly synced?: unknown
    readonly warnings?: readonly { readonly message: string }[]
    readonly items?: readonly { readonly tag: string; readonly itemStatus?: string }[]
  }
}

interface TillOptions {
  readonly tillId: string
  /** Number of the first sale. It must not repeat within 90 days. */
  readonly firstNumber: number
  nowMs(): number
  /** Sends a report to `/v1/` and this path. Rejects if no answer comes. */
  send(path: Path, body: object): Promise<TillAnswer>
}

type Path = 'sales' | 'sales/void' | 'returns'

interface Report {
  readonly path: Path
  readonly body: object
  readonly what: string
}

/** Reports that a till keeps. A real till keeps all of a day. */
export const WAITING_LIMIT = 1_000

/**
 * A simulated till of a shop. It reports sales, voids and returns over the local API of an agent, as a real till should:
 * what got no answer is kept, and sent again in its order.
 *
 *     const till = new SimulatedTill({ tillId: 'till-1', firstNumber: 1, nowMs, send, say })
 *     await till.sell([{ name: 'Jacke', priceCent: 8_990, epc }])
 */
export class SimulatedTill {
  readonly #options: TillOptions
  readonly #waiting: Report[] = []
  #number: number
  #last: { saleId: string; tillId: string } | undefined
  #isCut = false

  constructor(options: TillOptions) {
    this.#options = options
    this.#number = options.firstNumber
  }

  /** Number of reports that wait. */
  get waiting(): number {
    return this.#waiting.length
  }

  /** Sells pieces in one sale. Returns what the cashier reads. */
  sell(pieces: readonly Piece[]): Promise<readonly string[]> {
    const { tillId, nowMs } = this.#options
    const names = { saleId: String(this.#number++), tillId }
    const lines = pieces.map(({ name, priceCent, epc }) => ({
      name,
      quantity: 1,
      priceUnit: priceCent,
      vat: 19,
      ...(epc !== undefined && { epcs: [epc] }),
    }))
    const totalCent = pieces.reduce((sum, { priceCent }) => sum + priceCent, 0)
    const body = { ...names, occurredAt: new Date(nowMs()).toISOString(), totalCent, lines }
    this.#last = names
    return this.#report({ path: 'sales', body, what: `sale ${names.saleId}` })
  }

  /** Voids the last sale. */
  async voidLast(): Promise<readonly string[]> {
    const last = this.#last
    if (!last) return ['nothing was sold yet: there is no sale to void']
    this.#last = undefined
    return this.#report({ path: 'sales/void', body: last, what: `void of sale ${last.saleId}` })
  }

  /** Takes goods back by their tags. They may be sold again. */
  async takeBack(epcs: readonly string[]): Promise<readonly string[]> {
    if (epcs.length === 0) return ['name the goods by their EPCs']
    const returnId = `R-${this.#options.tillId}-${this.#number++}`
    return this.#report({ path: 'returns', body: { returnId, epcs, resellable: true }, what: `return ${returnId}` })
  }

  /** Cuts the network of the till, or restores it and sends what waits. */
  async cut(isCut: boolean): Promise<readonly string[]> {
    this.#isCut = isCut
    return isCut ? ['the network of the till is cut'] : ['the network of the till is back', ...(await this.#sendAll())]
  }

  async #report(report: Report): Promise<readonly string[]> {
    if (this.#waiting.length >= WAITING_LIMIT) return [`${WAITING_LIMIT} reports wait: restore the network first`]
    this.#waiting.push(report)
    return this.#sendAll()
  }

  /** Sends what waits, the oldest first, until one gets no answer. */
  async #sendAll(): Promise<string[]> {
    const said: string[] = []
    for (let next = this.#waiting[0]; next; next = this.#waiting[0]) {
      const answer = this.#isCut ? undefined : await this.#options.send(next.path, next.body).catch(() => undefined)
      if (!answer || answer.status >= 500) {
        said.push(`${next.what} waits: ${String(answer?.body.error ?? 'the agent did not answer')}`)
        return said
      }
      this.#waiting.shift()
      said.push(...describe(next, answer))
    }
    return said
  }
}

function describe({ what }: Report, { status, body }: TillAnswer): string[] {
  if (status !== 200) return [`${what} is refused: ${String(body.error)}`]
  const tags = (body.items ?? []).map(({ tag, itemStatus = 'unknown' }) => `${tag} ${itemStatus}`)
  const known = body.synced === true ? 'the cloud has it' : 'on its way to the cloud'
  return [
    `${what} recorded, ${known}${tags.length > 0 ? `: ${tags.join(', ')}` : ''}`,
    ...(body.warnings ?? []).map(({ message }) => `  the till warns: ${message}`),
  ]
}
