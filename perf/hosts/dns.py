# SPDX-License-Identifier: MIT
"""Builds and reads DNS messages, and sends them over UDP and TCP. A module of preload.py."""
import socket
import struct

TYPES = {"A": 1, "NS": 2, "SOA": 6, "TXT": 16, "AAAA": 28, "ANY": 255}
SECONDS = 60
KEEPALIVE = b"\0\0\x29\x04\xd0\0\0\0\0\0\x04\0\x0b\0\0"  # an OPT record with edns-tcp-keepalive (RFC 7828)
# Each question has a name, a type, and the code and the number of records that its answer must have. Over UDP the
# long answer is cut off.
QUESTIONS = (
    ("www.example", "A", 0, 1),
    ("nowhere.example", "A", 3, 0),
    ("www.example", "AAAA", 0, 0),
    ("www.example", "ANY", 0, 2),
    ("long.example", "TXT", 0, 1),
    ("example", "SOA", 0, 1),
    ("example", "NS", 0, 1),
    ("www.elsewhere", "A", 5, 0),
)


def question(name, kind, number, keepalive=False):
    words = b"".join(bytes([len(word)]) + word.encode() for word in name.split("."))
    head = struct.pack(">6H", number, 0, 1, 0, 0, 1 if keepalive else 0)
    return head + words + b"\0" + struct.pack(">2H", TYPES[kind], 1) + (KEEPALIVE if keepalive else b"")


def ask_udp(port, message, seconds=SECONDS):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
        end.settimeout(seconds)
        end.connect(("127.0.0.1", port))
        end.send(message)
        return end.recv(65535)


def receive(end, count):
    data = b""
    while len(data) < count:
        part = end.recv(count - len(data))
        if not part:
            raise ConnectionError("the server closed the connection")
        data += part
    return data


def ask_on(end, message):
    end.sendall(struct.pack(">H", len(message)) + message)
    return receive(end, struct.unpack(">H", receive(end, 2))[0])


def connect(port):
    end = socket.create_connection(("127.0.0.1", port), SECONDS)
    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return end


def ask_tcp(port, message):
    with connect(port) as end:
        return ask_on(end, message)


def ask_all(port):
    """Asks all questions, and checks the code and the number of records of each answer. Returns the answers without
    their ids."""
    answers = []
    for name, kind, code, count in QUESTIONS:
        for ask in (ask_udp, ask_tcp):
            answer = ask(port, question(name, kind, len(answers) + 1))
            number, flags, _, records = struct.unpack(">4H", answer[:8])
            cut_off = ask is ask_udp and kind == "TXT"
            seen = number, flags & 15, bool(flags & 0x200), records
            wanted = len(answers) + 1, code, cut_off, 0 if cut_off else count
            if seen != wanted:
                raise ValueError(f"{name} {kind}: id, code, cut off, records: {seen} instead of {wanted}")
            answers.append(answer[2:])
    return answers
