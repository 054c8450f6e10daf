/** An item packed into two numbers, as stored in memory and on disk. */
export interface PackedItem {
  /**
   * Bits 0–3: number of the item status, from 1, or the next number for a recalled item. Bit 4: set while an unpaid checkout names the item. Higher bits: price
   * in cents + 1, or 0 if the price is unknown. The number is never 0.
   */
  readonly info: number
  /** Number of the item's label, from 1; 0 if the label is unknown. */
  readonly label: number
}

/** An EPC of 96 bits, as three numbers of 32 bits. */
export type SlotKey = readonly [number, number, number]

const FIRST_SLOTS = 1_024

/**
 * Hash table in typed arrays with linear probing. A slot has 18 bytes: the key (3 × 32 bits), info and label. Info 0
 * marks an empty slot. At most ¾ of the slots are used.
 */
export class ItemSlots {
  #slots: number
  #keys: Uint32Array
  #infos: Uint32Array
  #labels: Uint16Array
  #used = 0

  constructor(slots = FIRST_SLOTS) {
    this.#slots = slots
    this.#keys = new Uint32Array(slots * 3)
    this.#infos = new Uint32Array(slots)
    this.#labels = new Uint16Array(slots)
  }

  get size(): number {
    return this.#used
  }

  get bytes(): number {
    return this.#slots * 18
  }

  get(key: SlotKey): PackedItem | undefined {
    const slot = this.#slotOf(key)
    const info = this.#infos[slot] ?? 0
    return info === 0 ? undefined : { info, label: this.#labels[slot] ?? 0 }
  }

  set(key: SlotKey, item: PackedItem): void {
    if (this.#used >= this.#slots * 0.75) this.#grow()
    const slot = this.#slotOf(key)
    if (this.#infos[slot] === 0) this.#used++
    this.#put(slot, key, item)
  }

  delete(key: SlotKey): void {
    const slot = this.#slotOf(key)
    if (this.#infos[slot] !== 0) this.#remove(slot)
  }

  clear(): void {
    this.#become(new ItemSlots())
  }

  /** Keys of the items whose info fulfils the condition. */
  *keysWith(isWanted: (info: number) => boolean): Iterable<SlotKey> {
    for (let slot = 0; slot < this.#slots; slot++) {
      const info = this.#infos[slot] ?? 0
      if (info !== 0 && isWanted(info)) yield this.#keyAt(slot)
    }
  }

  /** Returns the slot of this key, or the empty slot for a new key. */
  #slotOf([a, b, c]: SlotKey): number {
    const [keys, infos, last] = [this.#keys, this.#infos, this.#slots - 1]
    let slot = hashOf(a, b, c) & last
    while (infos[slot] !== 0 && (keys[slot * 3] !== a || keys[slot * 3 + 1] !== b || keys[slot * 3 + 2] !== c))
      slot = (slot + 1) & last
    return slot
  }

  #put(slot: number, [a, b, c]: SlotKey, { info, label }: PackedItem): void {
    this.#keys[slot * 3] = a
    this.#keys[slot * 3 + 1] = b
    this.#keys[slot * 3 + 2] = c
    this.#infos[slot] = info
    this.#labels[slot] = label
  }

  #keyAt(slot: number): SlotKey {
    return [this.#keys[slot * 3] ?? 0, this.#keys[slot * 3 + 1] ?? 0, this.#keys[slot * 3 + 2] ?? 0]
  }

  #itemAt(slot: number): PackedItem {
    return { info: this.#infos[slot] ?? 0, label: this.#labels[slot] ?? 0 }
  }

  #grow(): void {
    const larger = new ItemSlots(this.#slots * 2)
    for (let slot = 0; slot < this.#slots; slot++)
      if (this.#infos[slot] !== 0) larger.set(this.#keyAt(slot), this.#itemAt(slot))
    this.#become(larger)
  }

  #become(other: ItemSlots): void {
    this.#slots = other.#slots
    this.#keys = other.#keys
    this.#infos = other.#infos
    this.#labels = other.#labels
    this.#used = other.#used
  }

  /** Backward-shift deletion: moves later entries of the probe chain into the freed slot. */
  #remove(hole: number): void {
    const last = this.#slots - 1
    let at = hole
    for (let next = (hole + 1) & last; this.#infos[next] !== 0; next = (next + 1) & last) {
      const key = this.#keyAt(next)
      const firstSlot = hashOf(...key) & last
      if (((next - firstSlot) & last) < ((next - at) & last)) continue
      this.#put(at, key, this.#itemAt(next))
      at = next
    }
    this.#infos[at] = 0
    this.#used--
  }
}

/**
 * Hashes a key with the finalizer of MurmurHash3, which spreads EPCs with consecutive serial numbers over the table.
 */
function hashOf(a: number, b: number, c: number): number {
  let h = Math.imul(a, 0xcc9e2d51) ^ Math.imul(b, 0x1b873593) ^ Math.imul(c, 0x85ebca6b)
  h ^= h >>> 16
  h = Math.imul(h, 0x85ebca6b)
  h ^= h >>> 13
  h = Math.imul(h, 0xc2b2ae35)
  return (h ^ (h >>> 16)) >>> 0
}
