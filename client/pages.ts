import { UntagError } from './error.ts'

type Answer = Readonly<Record<string, unknown>>

/** Arrays that a response may contain beside its list. */
const SIDE_LISTS: ReadonlySet<string> = new Set(['warnings', 'errors'])

/** Yields the items of all pages. Fetches a page only when the caller requests its first item. */
export async function* itemsOf(
  fetchPage: (cursor: string | undefined) => Promise<Answer>,
  first?: string,
): AsyncGenerator<unknown, void, undefined> {
  let cursor = first
  do {
    const answer = await fetchPage(cursor)
    yield* listIn(answer)
    const next = typeof answer['nextCursor'] === 'string' ? answer['nextCursor'] : undefined
    if (next !== undefined && next === cursor)
      throw new UntagError('the server returned the same cursor twice', { status: 200, code: 'bad-answer' })
    cursor = next
  } while (cursor !== undefined)
}

/** Returns the only list of a paged response. */
export function listIn(answer: Answer): readonly unknown[] {
  const lists = Object.entries(answer).filter(([name, value]) => Array.isArray(value) && !SIDE_LISTS.has(name))
  const list = lists[0]?.[1]
  if (lists.length !== 1 || !Array.isArray(list))
    throw new UntagError('this operation does not return exactly one list', { status: 200, code: 'bad-answer' })
  return list
}
