/** Tells a job of this process that there may be something for it to do. Missing one costs time, never work: jobs also look by themselves. */
export interface Notifier {
  notify(): void
  /** Runs `task` at every signal from now on, until the answer is called. */
  subscribe(task: () => void): () => void
}

/** A signal that nobody listens to yet. */
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
