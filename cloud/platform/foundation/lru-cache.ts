/** A cache that drops the least recently used entry. */
export interface LruCache<K, V> {
  get(key: K): V | undefined
  set(key: K, value: V): void
  clear(): void
  readonly size: number
}

/** Makes a cache of at most `limit` entries. */
export function lruCache<K, V>(limit: number): LruCache<K, V> {
  /** The most recently used entry is last. */
  const entries = new Map<K, V>()

  function put(key: K, value: V): void {
    entries.delete(key)
    entries.set(key, value)
  }

  return {
    get(key) {
      const value = entries.get(key)
      if (value !== undefined) put(key, value)
      return value
    },
    set(key, value) {
      put(key, value)
      const [oldest] = entries.keys()
      if (entries.size > limit && oldest !== undefined) entries.delete(oldest)
    },
    clear: () => entries.clear(),
    get size() {
      return entries.size
    },
  }
}
