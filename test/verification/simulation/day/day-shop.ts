import { configOf, makeShop, type Layout, type Shop } from '../nodes/initial-shop.ts'
import { ANTENNAS } from '../nodes/gate-reader.ts'

/** Names of the agents, by the device of each agent. */
export const AGENTS = { station: 'agent-1', detacher: 'agent-2', gate: 'agent-3' } as const
export const READER = 'gate-reader'

/**
 * Creates a shop with three agents: at the staffed station, at the self-checkout, and at the gate with its UHF reader.
 */
export function makeDayShop(parent: string): Promise<Shop> {
  const layout: Layout = ({ station, detacher, gate }) => [
    configOf([{ deviceId: station, isGate: false }]),
    configOf([{ deviceId: detacher, isGate: false }]),
    configOf(
      [{ deviceId: gate, isGate: true }],
      [
        {
          deviceId: READER,
          driver: 'llrp',
          link: { tcp: '10.0.0.9:5084' },
          feeds: gate,
          antennas: { inside: [ANTENNAS.inside], outside: [ANTENNAS.outside] },
        },
      ],
    ),
  ]
  return makeShop(parent, { layout })
}
