/** Tells a job of this process that there may be something for it to do. Missing one costs time, never work: jobs also look by themselves. */
export interface Signal {
  give(): void
  /** Runs `task` at every signal from now on, until the answer is called. */
  on(task: () => void): () => void
}

/** A signal that nobody listens to yet. */
export function signal(): Signal {
  const tasks = new Set<() => void>()
  return {
    give: () => {
      for (const task of tasks) task()
    },
    on(task) {
      tasks.add(task)
      return () => void tasks.delete(task)
    },
  }
}
