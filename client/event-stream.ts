/** Maximum size of one event, characters. */
const EVENT_LIMIT = 1024 * 1024

/** Parses server-sent events (WHATWG HTML §9.2) from text that arrives in chunks. */
export interface EventReader {
  /** Adds a chunk and returns the data of the events that are now complete. Throws when an event is too large. */
  read(text: string): string[]
}

/** Creates a reader for a new stream. */
export function eventReader(): EventReader {
  let rest = ''
  let data: string[] = []
  let size = 0

  function line(text: string): string | undefined {
    if (text === '') {
      const event = data.length > 0 ? data.join('\n') : undefined
      data = []
      size = 0
      return event
    }
    const value = /^data(?:: ?(.*))?$/s.exec(text)
    if (value) data.push(value[1] ?? '')
    size += text.length
    return undefined
  }

  return {
    read(text) {
      const events: string[] = []
      // A CR at the end may be the first half of a CRLF.
      const parts = `${rest}${text}`.split(/\r\n|\n|\r(?!$)/)
      rest = parts.pop() ?? ''
      for (const part of parts) {
        const event = line(part)
        if (event !== undefined) events.push(event)
        if (size > EVENT_LIMIT) break
      }
      if (size + rest.length > EVENT_LIMIT) throw new Error('an event is too large')
      return events
    },
  }
}
