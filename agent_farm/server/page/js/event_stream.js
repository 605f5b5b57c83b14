// @ts-check
/* The server's events over one WebSocket, begun anew with a snapshot after every break. */
import { askWhoAnswers, openSocket } from "./server_proof.js";

const AGAIN_MILLISECONDS = 1000;
const GONE_MILLISECONDS = 8000;

export class EventStream {
  #isOver = false;
  /** @type {WebSocket | null} */
  #socket = null;
  /** @type {number | null} when the connection broke */
  #since = null;

  /** Besides the server's own events `tell` is given `connection`, with a state: ours, connecting, gone, and
   * unknown, which ends the stream: who answers does not know this login.
   * @param {string} login
   * @param {(event: string, data: any) => void} tell */
  constructor(login, tell) {
    this.login = login;
    this.tell = tell;
    this.#open();
  }

  end() {
    this.#isOver = true;
    this.#socket?.close();
  }

  async #open() {
    const who = await askWhoAnswers(this.login);
    if (this.#isOver) return;
    if (who === "gone") return this.#comeAgain();
    this.tell("connection", { state: who });
    if (who === "unknown") return this.end();
    this.#socket = openSocket("/api/events", this.login);
    this.#socket.addEventListener("message", (message) => {
      if (this.#isOver) return;
      const { event, data } = JSON.parse(message.data);
      this.#since = null;
      this.tell(event, data);
    });
    this.#socket.addEventListener("close", () => this.#comeAgain());
  }

  #comeAgain() {
    if (this.#isOver) return;
    this.#since ??= Date.now();
    const state = Date.now() - this.#since > GONE_MILLISECONDS ? "gone" : "connecting";
    this.tell("connection", { state });
    setTimeout(() => this.#isOver || this.#open(), AGAIN_MILLISECONDS);
  }
}
