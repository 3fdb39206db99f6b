/** A line to the service that can be cut and mended while a run goes on. */
import net from 'node:net';

export async function cuttableLine(serviceUrl) {
  const { hostname, port } = new URL(serviceUrl);
  const sockets = new Set();
  let isCut = false;
  let bytes = 0;
  const waiting = new Set();
  const server = net.createServer((near) => {
    if (isCut) {
      near.destroy();
      return;
    }
    const far = net.connect(Number(port), hostname);
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => {
        sockets.delete(socket);
        near.destroy();
        far.destroy();
      });
    }
    near.on('data', (chunk) => {
      bytes += chunk.length;
      for (const look of waiting) look();
    });
    near.pipe(far).pipe(near);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    cut() {
      isCut = true;
      for (const socket of sockets) socket.destroy();
    },
    mend() {
      isCut = false;
    },
    /** Resolves when something more was sent to the service. */
    traffic() {
      const before = bytes;
      return new Promise((resolve) => {
        const look = () => {
          if (bytes === before) return;
          waiting.delete(look);
          resolve();
        };
        waiting.add(look);
      });
    },
    close: () => new Promise((resolve) => {
      for (const socket of sockets) socket.destroy();
      server.close(resolve);
    }),
  };
}
