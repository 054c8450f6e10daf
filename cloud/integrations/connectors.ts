import { businesscentral } from './connectors/businesscentral.ts'
import { clover } from './connectors/clover.ts'
import { erpnext } from './connectors/erpnext.ts'
import { generic } from './connectors/generic.ts'
import { lightspeed } from './connectors/lightspeed.ts'
import { odoo } from './connectors/odoo.ts'
import { sapb1 } from './connectors/sapb1.ts'
import { shopify } from './connectors/shopify.ts'
import { square } from './connectors/square.ts'
import { sumup } from './connectors/sumup.ts'
import type { Connector } from './connector.ts'
import { canonical, type Side, type SystemName } from './systems.ts'

/** The systems that are built. A new one is one file and one line here. */
const CONNECTORS: readonly Connector[] = [
  generic,
  shopify,
  square,
  lightspeed,
  clover,
  sumup,
  odoo,
  erpnext,
  businesscentral,
  sapb1,
]

const BY_NAME: ReadonlyMap<string, Connector> = new Map(CONNECTORS.map((connector) => [connector.name, connector]))

/** The connector of a system on one side; undefined when it is not built. */
export function findConnector(system: SystemName, side: Side): Connector | undefined {
  const connector = BY_NAME.get(canonical(system))
  return connector?.sides.includes(side) === true ? connector : undefined
}

/** Names of the systems that are built for a side, and what their credentials are, for the documentation. */
export function describeSystems(side: Side): string {
  return CONNECTORS.filter((connector) => connector.sides.includes(side))
    .map(({ name, needs }) => `\`${name}\`: ${needs}`)
    .join('; ')
}
