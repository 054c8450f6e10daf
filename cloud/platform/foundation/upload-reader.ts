/**
 * Work on an uploaded file. It runs in a process of its own (bin/upload-process.ts). So it uses nothing but the file,
 * and its result is plain data.
 */
export interface UploadJob<T> {
  readonly name: string
  /** Failures name `field`, the field of the request that contains the file. */
  work(bytes: Uint8Array, field: string): Promise<T>
}

/** Runs jobs on uploaded files. */
export interface UploadReader {
  /**
   * Resolves to the result of the job. Rejects with its failure. A file that needs too much memory or time causes a 400
   * about `field`.
   */
  run<T>(job: UploadJob<T>, bytes: Uint8Array, field: string): Promise<T>
}

/** Runs jobs in this process, for tests and simulations: without limits of memory and time. */
export const READ_HERE: UploadReader = { run: (job, bytes, field) => job.work(bytes, field) }
