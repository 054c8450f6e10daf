import { realPlatform } from '../../../host/platform.ts'
import { eventually, type Fields } from '../../verification/kills/store-processes.ts'
import { processes, type LoopbackStore } from './loopback-store.ts'

/** A till that reports its sales to an agent of the store, as another program does. */
export interface ReportingTill {
  /** Reports a sale of one piece. Resolves when the agent has stored it. */
  sell(goods: { epc?: string; code?: string }): Promise<void>
}

const TILL_ID = 'till-1'
/** Maximum wait until the agent has the policy that lets it take sales, ms. */
const READY_MS = 60_000

/** Lets the agent at `url`, whose data are in `data`, take sales, and pairs a till with it. */
export async function openTill(store: LoopbackStore, url: string, data: string): Promise<ReportingTill> {
  const { api, storeId } = store
  const paired = await processes.run([
    'edge',
    'pair',
    '--data',
    data,
    '--name',
    TILL_ID,
    '--may',
    'sales',
    '--till',
    TILL_ID,
  ])
  if (paired.code !== 0) throw new Error(paired.stderr)
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${paired.stdout.trim()}` }
  const status = (await (await fetch(`${url}/v1/status`, { headers })).json()) as Fields
  const { policy } = (await api.call('fetchProtectionPolicy', { storeId })) as { policy: { tillSales: Fields } }
  const tillSales = { ...policy.tillSales, agents: [status['agentId']] }
  await api.call('updateProtectionPolicy', { storeId, policy: { ...policy, tillSales } })
  let number = 0
  const report = ({ epc, code }: { epc?: string; code?: string }) =>
    fetch(`${url}/v1/sales`, {
      method: 'POST',
      headers,
      body: JSON.stringify(saleOf(String(++number), { ...(epc !== undefined && { epc }), ...(code && { code }) })),
    })
  await eventually('the policy at the agent of the till', async () => (await report({})).ok, READY_MS)
  return {
    async sell(goods) {
      const answer = await report(goods)
      const { warnings } = (await answer.json()) as { warnings?: unknown[] }
      if (!answer.ok || warnings?.length !== 0)
        throw new Error(`the agent answered ${answer.status} to a sale: ${JSON.stringify(warnings)}`)
    },
  }
}

/** A sale of one piece, as agents and the cloud take it. */
export function saleOf(saleId: string, { epc, code }: { epc?: string; code?: string }): Fields {
  return {
    saleId,
    tillId: TILL_ID,
    occurredAt: new Date(realPlatform().clock.wall()).toISOString(),
    lines: [{ name: 'Jacke', quantity: 1, priceUnit: 4_990, vat: 19, ...(epc !== undefined && { epcs: [epc] }) }],
    ...(code !== undefined && { receiptCodes: [code] }),
  }
}
