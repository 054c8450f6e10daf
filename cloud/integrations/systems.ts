/** Which systems of a merchant's can be named (decisions §11). */

export const POS_SYSTEMS = ['shopify', 'square', 'lightspeed', 'clover', 'sumup', 'generic', 'custom'] as const
export const ERP_SYSTEMS = ['odoo', 'erpnext', 'businesscentral', 'sapb1', 'generic', 'custom'] as const
export type SystemName = (typeof POS_SYSTEMS)[number] | (typeof ERP_SYSTEMS)[number]

/** A till system, or an ERP system: one of each can be connected to a store beside others. */
export type Side = 'pos' | 'erp'

/** What is read from a system. */
export const DATA_TYPES = { pos: ['articles'], erp: ['stock', 'orders', 'suppliers'] } as const
export type DataType = 'articles' | 'stock' | 'orders' | 'suppliers'

/** `custom` is another name of `generic`. */
export function canonical(system: SystemName): string {
  return system === 'custom' ? 'generic' : system
}
