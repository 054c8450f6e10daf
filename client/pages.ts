import { UntagError } from './error.ts'

type Answer = Readonly<Record<string, unknown>>

/** Beside the list that is asked for, an answer may hold these. */
const SIDE_LISTS: ReadonlySet<string> = new Set(['warnings', 'errors'])

/** Every item of a paged answer, page after page; the next page is asked for when it is needed. */
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
      throw new UntagError('the server answers the same page for ever', { status: 200, code: 'bad-answer' })
    cursor = next
  } while (cursor !== undefined)
}

/** The one list of a paged answer. */
export function listIn(answer: Answer): readonly unknown[] {
  const lists = Object.entries(answer).filter(([name, value]) => Array.isArray(value) && !SIDE_LISTS.has(name))
  const list = lists[0]?.[1]
  if (lists.length !== 1 || !Array.isArray(list))
    throw new UntagError('this operation does not answer one list', { status: 200, code: 'bad-answer' })
  return list
}
