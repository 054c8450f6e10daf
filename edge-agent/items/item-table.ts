import { RECALLED } from '../../policy/item-status.ts'
import { ITEM_STATUSES, type ItemStatus, type ProtectionTechnology } from '../../policy/vocabulary.ts'
import { ItemSlots, type PackedItem, type SlotKey } from './item-slots.ts'

/** Attributes that many items share. The agent stores each distinct combination once. */
export interface ItemLabel {
  /** Empty if the item has no category. */
  readonly category: string
  /** Empty if the item has no brand. */
  readonly brand: string
  /** Absent: unknown. */
  readonly technology?: ProtectionTechnology
}

/** Facts about an item for gates and decisions. Absent fields are unknown. */
export interface KnownItem extends Partial<ItemLabel> {
  readonly status: ItemStatus
  /** Set if a recall stops the item; `status` then is `exception_hold`. */
  readonly recalled?: true
  /** Set if a till voided the sale of the item; `status` then is `cancelled`. */
  readonly voided?: true
  /** Price that was paid for the item; before a payment, the item's own price. */
  readonly priceCent?: number
  /** True if an unpaid checkout names the item. */
  readonly paying: boolean
  /** When a till took the item back for sale, trusted ms, until the items contain it: earlier releases have ended. */
  readonly backMs?: number
}

/**
 * Table of items by name. EPCs of 96 bits are in slots of 18 bytes (item-slots.ts), and all other names in a Map. One
 * million EPCs need less than 40 MB. In a Map of strings, the EPCs would need five times as much.
 */
export interface ItemTable {
  get(name: string): PackedItem | undefined
  set(name: string, item: PackedItem): void
  delete(name: string): void
  clear(): void
  /** Names of the items in one of these statuses. Reads the whole table: some milliseconds for a million items. */
  namesIn(statuses: ReadonlySet<ItemStatus>): Iterable<string>
  readonly size: number
  /** Memory that the slots use, without the Map, bytes. */
  readonly bytes: number
}

const PACKABLE = /^E[0-9A-F]{24}$/
/** Number of recalled items in `PackedItem`, after the numbers of the statuses. */
const RECALLED_NUMBER = ITEM_STATUSES.length + 1
/** Number of items whose sale a till voided. */
const VOIDED_NUMBER = RECALLED_NUMBER + 1
const VOIDED = { status: 'cancelled', voided: true } as const
const HIGHEST_PRICE = 2 ** 27 - 2
const LABEL_AT = 2 ** 32
/** Items with more than a status, by their number. */
const SPECIAL: Readonly<Record<number, typeof RECALLED | typeof VOIDED>> = {
  [RECALLED_NUMBER]: RECALLED,
  [VOIDED_NUMBER]: VOIDED,
}

/** Packs an item. Stores a price above 1.3 million EUR as 1.3 million EUR. */
export function packItem(
  item: Pick<KnownItem, 'status' | 'paying'> & {
    recalled?: true | undefined
    voided?: true | undefined
    priceCent?: number | undefined
  },
  label: number,
): PackedItem {
  const { recalled, voided } = item
  const status = recalled ? RECALLED_NUMBER : voided ? VOIDED_NUMBER : ITEM_STATUSES.indexOf(item.status) + 1
  const price = item.priceCent === undefined ? 0 : Math.min(item.priceCent, HIGHEST_PRICE) + 1
  return { info: price * 32 + (item.paying ? 16 : 0) + status, label }
}

/** Unpacks an item; undefined if `packItem` cannot have produced `info`. */
export function unpackItem({ info }: PackedItem, label: ItemLabel | undefined): KnownItem | undefined {
  const status = statusOf(info)
  if (status === undefined) return undefined
  const price = Math.floor(info / 32)
  return {
    paying: info % 32 >= 16,
    ...(SPECIAL[info % 16] ?? { status }),
    ...(price > 0 && { priceCent: price - 1 }),
    ...label,
  }
}

function statusOf(info: number): ItemStatus | undefined {
  return SPECIAL[info % 16]?.status ?? ITEM_STATUSES[(info % 16) - 1]
}

/** Makes an empty table. The first letter of a name is its kind: E for an EPC, U for a tag UID, T for a tag id. */
export function itemTable(): ItemTable {
  const slots = new ItemSlots()
  /** Items whose name is no EPC of 96 bits: info and label, packed into one number. */
  const others = new Map<string, number>()
  return {
    get(name) {
      if (isPackable(name)) return slots.get(keyOf(name))
      const packed = others.get(name)
      return packed === undefined ? undefined : { info: packed % LABEL_AT, label: Math.floor(packed / LABEL_AT) }
    },
    set(name, item) {
      if (isPackable(name)) slots.set(keyOf(name), item)
      else others.set(name, item.info + item.label * LABEL_AT)
    },
    delete(name) {
      if (isPackable(name)) slots.delete(keyOf(name))
      else others.delete(name)
    },
    clear() {
      others.clear()
      slots.clear()
    },
    *namesIn(statuses) {
      const isWanted = (info: number) => statuses.has(statusOf(info) as ItemStatus)
      for (const key of slots.keysWith(isWanted)) yield nameOf(key)
      for (const [name, packed] of others) if (isWanted(packed % LABEL_AT)) yield name
    },
    get size() {
      return slots.size + others.size
    },
    get bytes() {
      return slots.bytes
    },
  }
}

function isPackable(name: string): boolean {
  return name.length === 25 && PACKABLE.test(name)
}

function keyOf(name: string): SlotKey {
  return [uint32At(name, 1), uint32At(name, 9), uint32At(name, 17)]
}

function nameOf(key: SlotKey): string {
  return `E${key.map((part) => part.toString(16).padStart(8, '0')).join('')}`.toUpperCase()
}

function uint32At(name: string, at: number): number {
  return Number.parseInt(name.slice(at, at + 8), 16)
}
