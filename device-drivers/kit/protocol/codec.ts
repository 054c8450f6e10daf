/**
 * Converts between bytes and frames, without a clock or a transport. A codec uses a limited amount of memory for any
 * input.
 */
export interface Codec<Frame> {
  /** Adds the next bytes of the stream, split at any position. Returns the frames that are now complete. */
  push(chunk: Uint8Array): Frame[]
  encode(frame: Frame): Uint8Array
}

/** Bytes that the driver does not understand. */
export interface Noise {
  readonly bytes: number
  /** What the bytes are, and the setting to check. */
  readonly detail: string
  /** First bytes of a message that arrived whole but cannot be read. Undefined for bytes that are part of no frame. */
  readonly sample?: Uint8Array
}

/** A codec for a line with noise: it finds the next valid frame. */
export interface ResyncingCodec<Frame> extends Codec<Frame> {
  /**
   * Call this function when no byte arrived for the longest gap that the protocol allows within a frame. Returns the
   * frames that are complete because of the silence.
   */
  silence(): Frame[]
  /** Returns the bytes discarded since the last call, or null. */
  takeNoise(): Noise | null
  /** Buffered bytes of an incomplete frame. */
  readonly held: number
}
