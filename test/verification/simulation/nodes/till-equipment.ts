import { readConfig, type AgentConfig } from '../../../../edge-agent/config.ts'
import { eanOfGtin14 } from '../../../../policy/gs1/gtin.ts'
import { decodeSgtin, encodeSgtin } from '../../../../policy/gs1/sgtin.ts'
import { ANTENNAS } from './gate-reader.ts'

/** What a shop with tills has in addition: a gate at each agent, and tagged goods that the agents know from the start. */
export interface TillEquipment {
  /** Gate of each agent, in the order of the agents. */
  readonly gates: readonly string[]
  readonly goods: readonly TillGood[]
  /** Goods whose tags name their product, and which tills sell by the product. Each list is one product. */
  readonly byProduct: readonly (readonly TillGood[])[]
}

/** One tagged piece. */
export interface TillGood {
  readonly epc: string
  readonly ean: string
  readonly priceCent: number
}

type Call = (operation: string, body?: Record<string, unknown>) => Promise<unknown>

/** More than the tills of a run can sell. */
const GOODS = 80
/** Products that tills sell without reading tags, and tags of each. */
const BY_PRODUCT = { products: 8, tags: 5, priceCent: 1_990 }
const COMPANY = '4012349'
/** Only tills sell these goods, so no receipt of another shopper covers them at a gate. */
const LABEL = { category: 'kassenware', brand: 'Kasse' }

/** Registers gates and goods. `gate`: the gate of the first agent. */
export async function addTillEquipment(
  call: Call,
  { storeId, agents, gate, products }: { storeId: string; agents: number; gate: string; products: readonly Product[] },
): Promise<TillEquipment> {
  const gates = [gate]
  while (gates.length < agents) {
    const body = { storeId, deviceType: 'exit_gate', name: `Ausgang ${gates.length + 1}` }
    gates.push(((await call('registerDevice', body)) as { deviceId: string }).deviceId)
  }
  const goods = Array.from({ length: GOODS }, (_, n) => {
    const { ean = '', price = 0 } = products[n % products.length] ?? {}
    const epc = `E2810000${(n + 1).toString(16).padStart(16, '0').toUpperCase()}`
    return { epc, ean, priceCent: Math.round(price * 100) }
  })
  const items = goods.map(({ epc, ean }) => ({ epc, ean, protectionTechnology: 'uhf_rfid', ...LABEL }))
  await call('registerProtectedItems', { storeId, items })
  return { gates, goods, byProduct: await addGoodsByProduct(call, storeId) }
}

async function addGoodsByProduct(call: Call, storeId: string): Promise<TillGood[][]> {
  const all: TillGood[][] = []
  for (let n = 0; n < BY_PRODUCT.products; n++) {
    const epcs = Array.from({ length: BY_PRODUCT.tags }, (_, serial) => sgtinOf(String(n).padStart(6, '0'), serial + 1))
    const ean = eanOfGtin14(epcs[0]?.gtin14 ?? '') ?? ''
    const { priceCent } = BY_PRODUCT
    await call('insertProduct', { storeId, ean, name: `Ware ${n}`, price: priceCent / 100, vat: 19, ...LABEL })
    const goods = epcs.map(({ epc }) => ({ epc, ean, priceCent }))
    const items = goods.map(({ epc }) => ({ epc, ean, protectionTechnology: 'uhf_rfid', ...LABEL }))
    await call('registerProtectedItems', { storeId, items })
    all.push(goods)
  }
  return all
}

function sgtinOf(itemReference: string, serial: number): { epc: string; gtin14: string } {
  const made = encodeSgtin({
    scheme: 'sgtin-96',
    filter: 1,
    companyPrefix: COMPANY,
    itemReference,
    serial: String(serial),
  })
  const read = made.ok ? decodeSgtin(made.hex) : undefined
  if (!made.ok || !read?.ok) throw new Error('no SGTIN')
  return { epc: made.hex, gtin14: read.sgtin.gtin14 }
}

interface Product {
  readonly ean: string
  readonly price: number
}

/** Id of the UHF reader at the gate of an agent. */
export const readerOf = (agent: string): string => `reader-of-${agent}`

/** Adds the gate of an agent, if the configuration lacks it, and its UHF reader. */
export function withTillGate(config: AgentConfig, agent: string, gate: string): AgentConfig {
  const known: readonly { deviceId: string }[] = config.devices
  const lamps = { siren: { output: 1, seconds: 1 }, amber: { output: 2 }, green: { output: 3 } }
  const board = {
    deviceId: gate,
    driver: 'modbus',
    link: { tcp: '10.0.0.8:502' },
    output: 0,
    confirmInput: 0,
    ...lamps,
  }
  const reader = {
    deviceId: readerOf(agent),
    driver: 'llrp',
    link: { tcp: '10.0.0.9:5084' },
    feeds: gate,
    antennas: { inside: [ANTENNAS.inside], outside: [ANTENNAS.outside] },
  }
  const boards = known.some(({ deviceId }) => deviceId === gate) ? [] : [board]
  const checked = readConfig(JSON.stringify({ ...config, devices: [...known, ...boards, reader] }))
  if (!checked.ok) throw new Error(checked.faults.join('\n'))
  return checked.config
}
