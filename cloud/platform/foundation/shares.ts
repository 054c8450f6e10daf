/** Takes a part of a shared amount for a holder. Returns a function that gives it back; undefined if it does not fit. */
export type Shares = (holder: string, amount?: number) => (() => void) | undefined

/** An amount that holders share. Each of them gets at most `ofOne`, so that it cannot refuse the others. */
export function shares(limits: { readonly ofOne: number; readonly total: number }): Shares {
  const taken = new Map<string, number>()
  let total = 0
  return (holder, amount = 1) => {
    const own = taken.get(holder) ?? 0
    if (own + amount > limits.ofOne || total + amount > limits.total) return undefined
    taken.set(holder, own + amount)
    total += amount
    let isTaken = true
    return () => {
      if (!isTaken) return
      isTaken = false
      total -= amount
      const left = (taken.get(holder) ?? 0) - amount
      if (left > 0) taken.set(holder, left)
      else taken.delete(holder)
    }
  }
}
