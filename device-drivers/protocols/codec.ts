/** Converts between bytes and frames. Pure: no clock and no transport. Memory is bounded for any input. */
export interface Codec<Frame> {
  /** Takes the next bytes, in any division, and returns the frames that are complete. */
  push(chunk: Uint8Array): Frame[]
  encode(frame: Frame): Uint8Array
}

/** Bytes that belong to no frame. */
export interface Noise {
  readonly bytes: number
  readonly detail: string
}

/** A codec for a line with noise: it finds the next valid frame. */
export interface ResyncingCodec<Frame> extends Codec<Frame> {
  /** Call it when no byte arrived for the longest gap that the protocol allows within a frame. */
  silence(): Frame[]
  /** The bytes discarded since the last call, or null. */
  takeNoise(): Noise | null
  /** Buffered bytes of an incomplete frame. */
  readonly held: number
}
