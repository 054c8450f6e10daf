/** Notifies jobs of this process of new work. A lost notification only delays work, because jobs also poll. */
export interface Notifier {
  notify(): void
  /** Runs `task` at each notification. Call the returned function to unsubscribe. */
  subscribe(task: () => void): () => void
}

/** Makes a notifier without subscribers. */
export function notifier(): Notifier {
  const tasks = new Set<() => void>()
  return {
    notify: () => {
      for (const task of tasks) task()
    },
    subscribe(task) {
      tasks.add(task)
      return () => void tasks.delete(task)
    },
  }
}
