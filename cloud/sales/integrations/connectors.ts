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
import { type Connector, canonical, type Side, type SystemName } from './connector.ts'

/** All connectors. To add a system, create its file in connectors/ and list it here. */
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

/** Finds the connector of a system; undefined if the system does not support `side` (till or ERP). */
export function findConnector(system: SystemName, side: Side): Connector | undefined {
  const connector = BY_NAME.get(canonical(system))
  return connector?.sides.includes(side) === true ? connector : undefined
}

/** Names and credentials of the systems of a side, for the API documentation. */
export function describeSystems(side: Side): string {
  return CONNECTORS.filter((connector) => connector.sides.includes(side))
    .map(({ name, needs }) => `\`${name}\`: ${needs}`)
    .join('; ')
}
