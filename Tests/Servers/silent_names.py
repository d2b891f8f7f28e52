#!/usr/bin/env python3
"""A name server that takes questions and never says a word: a line on stdout for each.

    silent_names.py --address 127.1.2.3
"""
import argparse
import socket

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--address", required=True)
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind((parser.parse_args().address, 53))
    print("listening on 53", flush=True)
    while True:
        server.recvfrom(4096)
        print("asked", flush=True)
