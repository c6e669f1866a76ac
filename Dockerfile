FROM python:3.11-slim-bookworm
ENV PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 PLACET_DATA_DIR=/data
WORKDIR /app
COPY requirements.lock .
RUN pip install --no-cache-dir --require-hashes -r requirements.lock \
    && useradd --system --uid 10001 placet && install -d -o placet /data && install -d -o placet -m 700 /signer
COPY . .
USER placet
# The settings insist on addresses; collecting files connects to none of these.
RUN DATABASE_URL=postgresql://none@localhost/none DATABASE_SYSTEM_URL=postgresql://none@localhost/none \
    REDIS_URL=redis://localhost PLACET_SECRET_KEY=none \
    PLACET_BASE_URL=http://localhost PLACET_COLLECT_STATIC=true python manage.py collectstatic --no-input
EXPOSE 8000
CMD ["python", "-m", "gunicorn", "config.wsgi", "--bind", "0.0.0.0:8000", "--preload", "--no-control-socket", \
     "--worker-class", "gthread", "--workers", "2", "--threads", "8", "--timeout", "60", "--graceful-timeout", "5"]
