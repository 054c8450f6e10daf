import { errorBody } from '../operations/error-body.ts'
import type { Failure } from '../foundation/failure.ts'
import type { OperationResult } from '../operations/call-context.ts'
import type { ReportProgress } from '../operations/perform-steps.ts'

/**
 * Maximum number of reports that wait for a slow client. If more would wait, reports are dropped, because each report
 * replaces the previous one.
 */
const WAITING_LIMIT = 16

/**
 * Runs work and streams its progress as server-sent events: some `progress` events, then `result` or `error`. If the
 * work ends before its first report, the response is an ordinary response. A disconnected client does not stop the
 * work.
 */
export async function streamProgress(
  work: (report: ReportProgress) => Promise<OperationResult>,
  asFailure: (error: unknown) => Failure,
  requestId: string,
  headers: Readonly<Record<string, string>>,
): Promise<Response | OperationResult> {
  const encoder = new TextEncoder()
  const reports: string[] = []
  let sink: ReadableStreamDefaultController<Uint8Array> | undefined
  let started: () => void = () => undefined
  const first = new Promise<'progress'>((resolve) => (started = () => resolve('progress')))
  const send = (event: string, data: string) => {
    const text = `event: ${event}\ndata: ${data}\n\n`
    if (sink) {
      if ((sink.desiredSize ?? 0) > -WAITING_LIMIT || event !== 'progress') sink.enqueue(encoder.encode(text))
    } else if (reports.push(text) > WAITING_LIMIT) reports.shift()
  }
  const ended = work((report) => {
    send('progress', JSON.stringify(report))
    started()
  })
  // The work ended before its first report, so the response is not a stream.
  if ((await Promise.race([first, ended.then(() => 'ended' as const)])) === 'ended') return ended

  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      sink = controller
      for (const text of reports) controller.enqueue(encoder.encode(text))
      void ended
        .then(
          (performed) => send('result', performed.body),
          (error: unknown) => send('error', JSON.stringify(errorBody(asFailure(error), requestId))),
        )
        .finally(() => {
          const open = sink
          sink = undefined
          open?.close()
        })
        // The client has disconnected.
        .catch(() => undefined)
    },
    cancel() {
      sink = undefined
    },
  })
  return new Response(body, {
    status: 200,
    headers: { ...headers, 'content-type': 'text/event-stream', 'cache-control': 'no-store' },
  })
}
