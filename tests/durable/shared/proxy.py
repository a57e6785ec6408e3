# SPDX-License-Identifier: MIT
"""A proxy in front of a server's socket. It cuts connections, and loses the reply to a batch."""
import socket
import threading


class Proxy:
    def __init__(self, target, marks):
        """Takes a function `marks`, which returns whether the data from a client is a batch."""
        self.target, self.marks = str(target), marks
        self.lock = threading.Lock()
        self.pairs, self.lose, self.lost, self.shut, self.listener = set(), 0, 0, False, None

    def start(self, path):
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(path))
        path.chmod(0o777)
        return self.listen()

    def start_tcp(self, host):
        """Listens at a port of its own."""
        self.listener = socket.create_server((host, 0))
        return self.listen()

    @property
    def port(self):
        return self.listener.getsockname()[1]

    def listen(self):
        self.listener.listen(64)
        threading.Thread(target=self.accept, daemon=True).start()
        return self

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            try:
                if self.shut:
                    raise OSError
                server.connect(self.target)
            except OSError:
                client.close()
                server.close()
                continue
            pair = [client, server, False]
            with self.lock:
                self.pairs.add(tuple(pair[:2]))
            threading.Thread(target=self.forward, args=(pair, client, server, True), daemon=True).start()
            threading.Thread(target=self.forward, args=(pair, server, client, False), daemon=True).start()

    def forward(self, pair, source, to, from_client):
        """Forwards data in one direction. pair[2] says whether to lose the reply to the client's last data."""
        try:
            while data := source.recv(65536):
                if from_client and self.lose > 0 and self.marks(data):
                    with self.lock:
                        if self.lose > 0:
                            self.lose -= 1
                            pair[2] = True
                if not from_client and pair[2]:
                    self.lost += 1
                    break
                to.sendall(data)
        except OSError:
            pass
        self.close(pair[0], pair[1])

    def close(self, *pair):
        with self.lock:
            self.pairs.discard(tuple(pair))
        for one in pair:
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            one.close()

    def cut(self, shut=False):
        """Ends all connections. If `shut` is true, accepts no connection until open() is called."""
        self.shut = shut
        with self.lock:
            pairs = list(self.pairs)
        for pair in pairs:
            self.close(*pair)

    def open(self):
        self.shut = False

    def end(self):
        self.listener.close()
        self.cut(True)
