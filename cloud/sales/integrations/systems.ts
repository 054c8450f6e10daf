/** Names of supported systems (ADR webhooks). */

export const POS_SYSTEMS = ['shopify', 'square', 'lightspeed', 'clover', 'sumup', 'generic', 'custom'] as const
export const ERP_SYSTEMS = ['odoo', 'erpnext', 'businesscentral', 'sapb1', 'generic', 'custom'] as const
export type SystemName = (typeof POS_SYSTEMS)[number] | (typeof ERP_SYSTEMS)[number]

/** Till or ERP. A store can have several connections on each side. */
export type Side = 'pos' | 'erp'

/** Data types that are read from a system. */
export const DATA_TYPES = { pos: ['articles'], erp: ['stock', 'orders', 'suppliers'] } as const
export type DataType = 'articles' | 'stock' | 'orders' | 'suppliers'

/** `custom` is a synonym of `generic`. */
export function canonical(system: SystemName): string {
  return system === 'custom' ? 'generic' : system
}
