/** An answer of which the client has not read all. */
interface Unread {
  readonly network: string
  readonly bytes: number
  readonly cut: () => void
}

/** Memory for answers that clients have not read, bytes: of one network, and of all. */
export const UNREAD_LIMITS = { ofOne: 128 * 1024 * 1024, total: 512 * 1024 * 1024 }

/**
 * Counts answers until their clients have read them, so that clients which read nothing cannot fill the memory. Over the
 * limit it cuts the oldest answer of the network with the most. `add` returns how to end the count.
 */
export function unreadAnswers(limits = UNREAD_LIMITS): { add(answer: Unread): () => void } {
  const answers = new Set<Unread>()
  const ofNetwork = new Map<string, number>()
  let total = 0

  function remove(answer: Unread): void {
    if (!answers.delete(answer)) return
    total -= answer.bytes
    const left = (ofNetwork.get(answer.network) ?? 0) - answer.bytes
    if (left > 0) ofNetwork.set(answer.network, left)
    else ofNetwork.delete(answer.network)
  }

  function cutOldestOf(network: string): void {
    for (const answer of answers)
      if (answer.network === network) {
        remove(answer)
        return answer.cut()
      }
  }

  return {
    add(answer) {
      answers.add(answer)
      total += answer.bytes
      ofNetwork.set(answer.network, (ofNetwork.get(answer.network) ?? 0) + answer.bytes)
      while ((ofNetwork.get(answer.network) ?? 0) > limits.ofOne) cutOldestOf(answer.network)
      while (total > limits.total) {
        const [most] = [...ofNetwork].reduce((a, b) => (b[1] > a[1] ? b : a))
        cutOldestOf(most)
      }
      return () => remove(answer)
    },
  }
}
